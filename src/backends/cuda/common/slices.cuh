// How K is dealt out to slices, as ops/slices.h does it for the host: blocks of 64 columns, the first slices taking one
// more.
#pragma once

#include "backends/cuda/common/math.cuh"

namespace fmhc::cuda {

struct SliceRange {
  int64_t begin, end;
};

// `count` things dealt out to `parts`, the first ones taking the remainder.
FMHC_BOTH SliceRange deal(int64_t count, int64_t parts, int64_t index) {
  const int64_t each = count / parts;
  const int64_t longer = count % parts;
  const int64_t begin = index * each + (index < longer ? index : longer);
  return {begin, begin + each + (index < longer ? 1 : 0)};
}

FMHC_BOTH SliceRange slice_columns(int64_t flat, int64_t splits, int64_t index) {
  const SliceRange blocks = deal((flat + 63) / 64, splits, index);
  const int64_t begin = blocks.begin * 64;
  const int64_t end = blocks.end * 64;
  return {begin < flat ? begin : flat, end < flat ? end : flat};
}

}  // namespace fmhc::cuda
