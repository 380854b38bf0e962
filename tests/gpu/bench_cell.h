// One measured cell: a problem at a token count, its buffers rotated so that what should be cold is cold, and
// its time.
#pragma once

#include <memory>
#include <string>

#include "report.h"
#include "timing.h"

namespace fmhc_gpu {

enum class Mode { kChained, kForeign, kAlone };

struct Cell {
  std::string op;  // "seam+norm": an operator and its options
  Mode mode = Mode::kChained;
  bool warm = false;  // residual in the L2; fn is cold always
  int64_t tokens = 1;
  fmhc_problem problem{};
};

struct Measured {
  Timing timing;
  double us = 0, bytes = 0, floor_us = 0;
  int calls = 0, splits = 0;
  std::string kernel, error;  // error: absent, refused, or results that differ between graph and eager
  bool absent = false;
};

// "pre", "seam+norm", "head+unfused", "finish+carried": false for an unknown word.
bool parse_op(const std::string& text, fmhc_problem* problem);
const char* mode_name(Mode mode);

// Device memory for all cells of a run, one pool a tensor.
class Pools {
 public:
  explicit Pools(Device& device) : device_(device) {}
  ~Pools();
  Pools(const Pools&) = delete;
  Pools& operator=(const Pools&) = delete;

  void begin(int64_t flat, int64_t splits);              // values that follow K are made again
  char* take(SlotId slot, int32_t dtype, size_t bytes);  // grows and fills as needed
  char* memory(int index, size_t bytes);                 // 0 scratch, 1 state, 2 packed, 3 sink, 4 flush

 private:
  struct Pool {
    char* data = nullptr;
    size_t bytes = 0;
    int32_t dtype = 0;
  };
  Device& device_;
  Pool slots_[kSlots];
  Pool memory_[5];
  int64_t flat_ = 0, splits_ = 1;
};

struct Bench {
  Device& device;
  Pools& pools;
  int replays;
  double foreign_us;  // of the foreign kernel alone
  double empty_us;    // of a graph with one empty kernel

  Measured measure(const Cell& cell, const std::string& kernel_hint);
};

double foreign_alone_us(Device& device, Pools& pools, int replays);
double empty_graph_us(Device& device, int replays);

// Token counts after which the plan changes its kernel or split, from its own answers.
std::vector<int64_t> plan_edges(Device& device, const fmhc_problem& problem, const std::string& kernel_hint);

inline constexpr double kFloorTbps = 4.3;    // what a device-to-device copy of an H200 reaches
inline constexpr double kColdBytes = 160e6;  // more than twice the L2

}  // namespace fmhc_gpu
