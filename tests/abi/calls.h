// A well-formed call of any operator for the tests of the C interface: problem, plan and tensors, each tensor
// in memory of its own between guard zones. Outputs start as all-ones bytes, a NaN in every dtype. The tables
// of slots and operators state flashmhc.h a second time, on purpose: they share nothing with the library.
#pragma once

#include <flashmhc/flashmhc.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace abi_test {

enum class Type { kStorage, kCoefficient, kFp32, kNormWeight, kReserved };

struct Slot {
  const char* name;
  size_t offset;  // in fmhc_args
  bool output;
  Type type;
  bool wide;               // last axis of stride 1
  std::string_view shape;  // a letter an axis: T n H K N S, 1 and 3 for themselves
};

struct Op {
  int32_t op;
  const char* name;
  std::string_view required, optional;  // slot names between blanks
  bool collapses, carries, projects, in_place;
};

void PrintTo(const Op& op, std::ostream* out);  // for GoogleTest

std::span<const Slot> slots();
std::span<const Op> ops();
const Slot& slot(std::string_view name);
const Op& op_of(int32_t op);

struct Options {
  int32_t op = FMHC_PRE;
  int32_t storage = FMHC_BF16;
  int32_t norm = FMHC_NORM_NONE;
  int32_t norm_weight = FMHC_BF16;
  int32_t carried = 0;
  int32_t strided = 0;
  int32_t align_bytes = 0;
  int32_t streams = 4;
  int32_t splits = 2;  // project and finish
  int32_t iters = 20;
  int64_t hidden = 64;
  int64_t tokens = 3;
  int64_t max_tokens = 8;
  bool optional_outputs = true;
  const char* kernel = nullptr;

  std::string describe() const;
};

enum class Presence { kUnused, kMay, kRequired };
Presence presence(const Options& options, const Slot& slot);

fmhc_problem make_problem(const Options& options);
fmhc_target host_target();

// Bytes at a multiple of 256 between guard zones.
class Memory {
 public:
  Memory() = default;
  Memory(size_t bytes, unsigned char fill);

  unsigned char* data() const { return data_; }
  size_t size() const { return size_; }
  const std::vector<unsigned char>& raw() const { return raw_; }  // with the guard zones
  bool guards_intact() const;

 private:
  std::vector<unsigned char> raw_;
  unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

class Call {
 public:
  explicit Call(const Options& options);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Of fmhc_plan_make; the tensors are there in any case.
  int32_t plan_code() const { return plan_code_; }
  const Options& options() const { return options_; }

  fmhc_in get(const Slot& slot) const;
  void set(const Slot& slot, const fmhc_in& tensor);
  void remove(const Slot& slot) { set(slot, fmhc_in{}); }

  // Moves a tensor to fresh memory with these strides, `skip` elements behind its beginning. The values stay;
  // what lies between them is NaN.
  void place(const Slot& slot, const std::array<int64_t, 4>& strides, int64_t skip);

  int32_t run() { return fmhc_run(&plan, &args, &diag); }

  std::vector<unsigned char> read(const Slot& slot) const;  // the elements in row-major order
  std::vector<unsigned char> read_outputs() const;
  bool used(const Slot& slot) const { return presence(options_, slot) != Presence::kUnused; }
  std::vector<unsigned char> all_bytes() const;  // every tensor and its guard zones
  bool surroundings_intact() const;              // guard zones, and what lies between the elements of outputs

  fmhc_problem problem;
  fmhc_target target;
  fmhc_plan plan{};
  fmhc_args args{};
  fmhc_diag diag{};
  Memory scratch, state;

 private:
  size_t index(const Slot& slot) const;
  void fill(const Slot& slot, const fmhc_in& tensor) const;

  Options options_;
  int32_t plan_code_;
  std::vector<Memory> memory_;  // by slot
};

// Every kernel of the build that takes these options on this machine.
std::vector<std::string> kernels_for(Options options);

// Options that reach every tensor of the operator: for the operators that have them, a norm and a carried
// mix.
std::vector<Options> variants_of(const Op& op);

int32_t element_bytes(int32_t dtype);

}  // namespace abi_test
