// Storage formats, apart from the library's own conversions so that a fault there shows here. A value is held
// as the double that it is exactly; rounding is to nearest, ties to even, straight from double.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flashmhc/flashmhc.h"

namespace fmhc::check {

struct Format {
  int32_t digits;        // of the significand, the leading one included
  int32_t min_exponent;  // of the smallest normal number
  int32_t max_exponent;  // of the largest finite number
  size_t bytes;
};

// Null for a number that is no fmhc_dtype.
const Format* find_format(int32_t dtype);

double round_to(double value, int32_t dtype);
double load(const void* data, int32_t dtype, int64_t index);
// Rounds first.
void store(double value, int32_t dtype, void* data, int64_t index);

}  // namespace fmhc::check
