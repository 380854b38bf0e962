// How K is dealt out to slices, as ops/slices.h does it for the host: blocks of 64 columns, the first slices
// taking one more.
#pragma once

#include "backends/cuda/common/math.cuh"

namespace fmhc::cuda {

template <typename Int>
struct Range {
  Int begin, end;
};

// `count` things dealt out to `parts`, the first ones taking the remainder.
template <typename Int>
FMHC_BOTH Range<Int> deal(Int count, Int parts, Int index) {
  const Int each = count / parts;
  const Int longer = count % parts;
  const Int begin = index * each + (index < longer ? index : longer);
  return {begin, begin + each + (index < longer ? 1 : 0)};
}

FMHC_BOTH Range<int64_t> slice_columns(int64_t flat, int64_t splits, int64_t index) {
  const Range<int64_t> blocks = deal((flat + 63) / 64, splits, index);
  const int64_t begin = blocks.begin * 64;
  const int64_t end = blocks.end * 64;
  return {begin < flat ? begin : flat, end < flat ? end : flat};
}

}  // namespace fmhc::cuda
