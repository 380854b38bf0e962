// How K is cut for split-K: the layout of dot_mix and sqrsum that producers and consumers share.
#pragma once

#include <cstdint>

#include "core/math.h"

namespace fmhc {

// K is cut at multiples of this many columns, the first slices taking the remainder.
inline constexpr int64_t kSplitBlock = 64;

struct Slice {
  int64_t begin, end;  // columns of K
};

// Slice `index` of `splits`: ceil(K/64) blocks dealt out evenly, the first ones taking one more.
constexpr Slice slice_of(int64_t flat, int32_t splits, int32_t index) {
  const int64_t blocks = ceil_div(flat, kSplitBlock);
  const int64_t each = blocks / splits;
  const int64_t longer = blocks % splits;
  const int64_t begin = index * each + min64(index, longer);
  const int64_t end = begin + each + (index < longer ? 1 : 0);
  return {min64(begin * kSplitBlock, flat), min64(end * kSplitBlock, flat)};
}

}  // namespace fmhc
