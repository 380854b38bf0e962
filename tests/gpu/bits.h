// Comparing results bit for bit: sums of whole outputs, and single tokens.
#pragma once

#include "case.h"

namespace fmhc_gpu {

// Adds the bits of every output into *sum, a word of device memory. Does not wait.
void sum_outputs(Device& device, const Prepared& call, uint64_t* sum);

// Elements of two views of one shape whose bits differ. Waits.
int64_t differing(Device& device, const View& a, const View& b);

// One token of a tensor that has tokens; the tensor itself if it has none.
View token_view(SlotId slot, const View& view, int64_t token);
void fill_nan(Device& device, const View& view);

// A call for one token of `batch`: its inputs are views into the batch's, its outputs lie in `arena`.
Prepared single_token(Arena& arena, const Prepared& batch, int64_t token);

// Sums of results in device memory, one word a run; all must equal the first.
class SumLog {
 public:
  SumLog(Device& device, int64_t capacity);
  ~SumLog();
  SumLog(const SumLog&) = delete;
  SumLog& operator=(const SumLog&) = delete;

  uint64_t* next();  // zeroed words; wraps never: at most `capacity` calls
  int64_t used() const { return used_; }
  std::vector<uint64_t> read();  // waits
  int64_t count_unequal(uint64_t want);

 private:
  Device& device_;
  uint64_t* words_;
  int64_t capacity_, used_ = 0;
};

}  // namespace fmhc_gpu
