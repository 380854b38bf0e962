// Do two strided tensors share a byte? Exact for what callers pass: whole tensors, row-padded slices, and
// column slices of one larger tensor; other interleavings count as overlap.
#pragma once

#include "flashmhc/flashmhc.h"

namespace fmhc {

// Number of bytes from the first to the last element; false if it passes int64 or a stride is negative.
[[nodiscard]] bool byte_span(const fmhc_in& tensor, int64_t* bytes);

bool overlaps(const fmhc_in& a, const fmhc_in& b);

// True if two index tuples of the tensor reach one element.
bool overlaps_itself(const fmhc_in& tensor);

// Same address, shape and strides.
bool same_tensor(const fmhc_in& a, const fmhc_in& b);

}  // namespace fmhc
