// How many slices of K the projection is cut into. Pure arithmetic; the units come from the caller's target.
#pragma once

#include <cstdint>

namespace fmhc {

// K is cut at multiples of this many columns, the first slices taking the remainder.
inline constexpr int64_t kSplitBlock = 64;

// The rule of SGLang's FlashInfer branch: floor(units / row blocks) and a quarter of the K blocks, rounded
// down to 1, 2, 4, 8 or 16.
int32_t split_sglang(int64_t tokens, int64_t flat, int64_t units);

// Ours. `batch_invariant`: from K alone, so that a token's bits do not follow T.
int32_t split_auto(int64_t tokens, int64_t flat, int64_t units, bool batch_invariant);

struct Slice {
  int64_t begin, end;  // columns of K
};
// Slice `index` of `splits`: ceil(K/64) blocks dealt out evenly, the first ones taking one more.
Slice slice_of(int64_t flat, int32_t splits, int32_t index);

}  // namespace fmhc
