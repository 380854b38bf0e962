#include "plan/split_k.h"

#include "core/math.h"
#include "ops/slices.h"

namespace fmhc {
namespace {

constexpr int64_t kRowBlock = 64;        // tokens a CTA of the projection takes
constexpr int64_t kMinBlocksASlice = 4;  // below this a slice is mostly prologue
constexpr int64_t kMaxSplits = 64;
constexpr int64_t kMaxSliceColumns = 1024;  // a longer slice of fn does not fit in shared memory

int64_t largest_power_of_two(int64_t value, int64_t most) {
  int64_t power = 1;
  while (power * 2 <= min64(value, most)) power *= 2;
  return power;
}

}  // namespace

int32_t split_sglang(int64_t tokens, int64_t flat, int64_t units) {
  const int64_t row_blocks = max64(ceil_div(tokens, kRowBlock), 1);
  const int64_t raw = max64(1, min64(units / row_blocks, ceil_div(flat, kSplitBlock) / kMinBlocksASlice));
  return static_cast<int32_t>(largest_power_of_two(raw, 16));
}

int32_t split_auto(int64_t tokens, int64_t flat, int64_t units, bool batch_invariant) {
  const int64_t by_length = ceil_div(flat, kSplitBlock) / kMinBlocksASlice;
  const int64_t row_blocks = batch_invariant ? 1 : max64(ceil_div(tokens, kRowBlock), 1);
  // A batch-invariant plan may not look at T, nor at the units: the same model gives the same bits on every
  // card.
  const int64_t by_units = batch_invariant ? 16 : units / row_blocks;
  int64_t splits = largest_power_of_two(max64(1, min64(by_units, by_length)), kMaxSplits);
  while (splits < kMaxSplits && ceil_div(flat, splits) > kMaxSliceColumns) splits *= 2;
  return static_cast<int32_t>(splits);
}

}  // namespace fmhc
