// How many slices of K the projection is cut into. Pure arithmetic; the units come from the caller's target.
#pragma once

#include <cstdint>

namespace fmhc {

// The rule of SGLang's FlashInfer branch: floor(units / row blocks) and a quarter of the K blocks, rounded
// down to 1, 2, 4, 8 or 16.
int32_t split_sglang(int64_t tokens, int64_t flat, int64_t units);

// Ours. `batch_invariant`: from K alone, so that a token's bits do not follow T.
int32_t split_auto(int64_t tokens, int64_t flat, int64_t units, bool batch_invariant);

}  // namespace fmhc
