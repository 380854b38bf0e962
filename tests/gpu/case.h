// One call of the library with everything around it: a problem, tensors laid out in one poisoned arena
// between guard zones, seeded inputs, the run, and the comparison with the oracle. The same seed gives the
// same bytes everywhere.
#pragma once

#include <string>
#include <vector>

#include "oracle_math.h"

namespace fmhc_gpu {

enum class Family { kNormal, kPeaked, kMassive, kLogNormal, kInteger, kTiny, kCancel, kHuge };
inline constexpr int kFamilies = 8;
const char* family_name(Family family);

struct CaseSpec {
  fmhc_problem problem{};
  int64_t tokens = 0;
  int32_t given_splits = 16;  // finish: partials handed in
  Family family = Family::kNormal;
  uint64_t seed = 1;
  bool in_place = false;   // residual_out is residual
  bool broadcast = false;  // stream stride 0 of residual
  bool pre_mix = false;    // ask for the optional output
  int64_t row_pad = 0;     // elements between rows of wide tensors
  int64_t shift = 0;       // bytes by which wide tensors are off 256-byte alignment
  std::string kernel;      // hint
  int32_t split_k = 0;     // hint
};

fmhc_problem make_problem(int32_t op, int64_t hidden, int64_t tokens);  // bf16, four streams, deepseek_v4, F2
std::string describe(const CaseSpec& spec);

// Memory handed out in order, 0xff everywhere that nobody wrote: NaN in every float type.
class Arena {
 public:
  Arena(Device& device, size_t capacity);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void reset() { used_ = 0; }
  bool fits(size_t bytes) const;               // with its guards
  char* take(size_t bytes, size_t shift = 0);  // 256-byte aligned, then shifted; guards on both sides
  void poison();                               // all that was handed out, guards included
  uint64_t checksum();                         // of the same bytes
  size_t used() const { return used_; }

 private:
  Device& device_;
  char* base_;
  size_t capacity_, used_ = 0;
  uint64_t* sum_;
};

enum class Ready { kYes, kAbsent, kTooLarge, kRefused };

struct Prepared {
  CaseSpec spec;
  fmhc_plan plan{};
  fmhc_args args{};
  View view[kSlots];
  View before;  // of the streams, when the call overwrites them
  int64_t splits = 1;
  void* packed = nullptr;
  size_t packed_bytes = 0;
  uint64_t clean = 0;  // checksum with inputs written and all else poisoned
  std::string kernel;
  std::string reason;  // why it is not ready
};

// Plans, lays out in the emptied arena, fills, prepares. kAbsent: no kernel of this build takes the problem.
Ready prepare(Device& device, Arena& arena, const CaseSpec& spec, Prepared* out);

// 0xff over every output, scratch and nothing else.
void poison_outputs(Device& device, const Prepared& call);

int32_t run(Device& device, const Prepared& call, fmhc_diag* diag);  // on the device's stream, not waited for

struct Check {
  std::string name;
  Tally tally;
  Detail first{};  // of the first miss
};

struct Outcome {
  std::vector<Check> checks;
  std::vector<std::string> failures;  // in words; empty: all held
  bool ok() const { return failures.empty(); }
  double worst() const;
};

struct Judge {
  Judge(Device& device, size_t work_bytes);
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  // Compares all outputs with the oracle; needs the device to be idle or the call on the device's stream.
  Outcome compare(const Prepared& call, const Bounds& bounds);
  // compare, then: nothing outside the outputs changed, not even between their rows.
  Outcome compare_and_guard(Arena& arena, const Prepared& call, const Bounds& bounds);

  Device& device;
  char* work;
  size_t work_bytes;
  Tally* tallies;
};

Bounds bounds_for(const CaseSpec& spec, bool strict);

}  // namespace fmhc_gpu
