// Where things lie: partial sums in scratch and the shapes of grids. Pure functions of sizes, tested without
// a GPU.
#pragma once

#include <cstdint>

#include "backends/cuda/params.h"
#include "core/math.h"
#include "ops/op.h"

namespace fmhc::cuda {

// A row of partial sums of one token and slice: the logits, then the square sum, padded to whole 32-byte
// sectors.
constexpr int64_t partial_row(int64_t logits) {
  return round_up(logits + 1, 8);
}

// Partial sums in scratch, [S, T, partial_row].
inline Partials partials_in(void* scratch, int64_t logits, int64_t tokens) {
  const int64_t row = partial_row(logits);
  auto* base = static_cast<float*>(scratch);
  return {base, base + logits, tokens * row, row, tokens * row, row};
}

inline constexpr int64_t kVectorBytes = 16;

// True if every row of the wide tensors can be walked in 16-byte steps.
bool is_vector(const Problem& problem);

// The grid never passes this; kernels loop over what is left.
inline constexpr int64_t kMostBlocks = int64_t{1} << 30;

}  // namespace fmhc::cuda
