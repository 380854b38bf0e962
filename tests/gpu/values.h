// Tensors as the tests see them: strided views, and storage types decoded and rounded by code of our own,
// apart from the library's. Everything is callable on the host and on the device.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "flashmhc/flashmhc.h"

#if defined(__CUDACC__)
#define FMHC_HD __host__ __device__
#else
#define FMHC_HD
#endif

namespace fmhc_gpu {

struct View {
  void* data = nullptr;
  int64_t shape[4] = {}, stride[4] = {};  // elements
  int32_t rank = 0, dtype = 0;

  FMHC_HD int64_t at(int64_t i, int64_t j = 0, int64_t k = 0) const {
    return i * stride[0] + j * stride[1] + k * stride[2];
  }
  FMHC_HD int64_t count() const {
    int64_t n = rank == 0 ? 0 : 1;
    for (int axis = 0; axis < rank; ++axis) n *= shape[axis];
    return n;
  }
  // The offset of the flat-th element in row-major order of the shape.
  FMHC_HD int64_t offset(int64_t flat) const {
    int64_t sum = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      sum += flat % shape[axis] * stride[axis];
      flat /= shape[axis];
    }
    return sum;
  }
};

FMHC_HD inline int element_bytes(int32_t dtype) {
  return dtype == FMHC_FP32 ? 4 : dtype == FMHC_FP64 ? 8 : dtype == 0 ? 1 : 2;
}

FMHC_HD inline float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

FMHC_HD inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

FMHC_HD inline double fp16_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa != 0 ? static_cast<double>(NAN) : sign * static_cast<double>(INFINITY);
  return exponent == 0 ? sign * ldexp(static_cast<double>(mantissa), -24)
                       : sign * ldexp(static_cast<double>(mantissa + 1024), exponent - 25);
}

FMHC_HD inline double load_element(const void* data, int64_t index, int32_t dtype) {
  switch (dtype) {
    case FMHC_FP32:
      return static_cast<double>(static_cast<const float*>(data)[index]);
    case FMHC_FP64:
      return static_cast<const double*>(data)[index];
    case FMHC_FP16:
      return fp16_value(static_cast<const uint16_t*>(data)[index]);
    default:
      return static_cast<double>(
          float_of_bits(static_cast<uint32_t>(static_cast<const uint16_t*>(data)[index]) << 16));
  }
}

FMHC_HD inline double load(const View& view, int64_t offset) {
  return load_element(view.data, offset, view.dtype);
}

// Nearest value with `mantissa` stored bits, ties to even; infinity above `largest`.
FMHC_HD inline double round_to(double value, int mantissa, int least_exponent, double largest) {
  if (!(fabs(value) <= 1.7e308) || value == 0.0) return value;
  int exponent = ilogb(value);
  if (exponent < least_exponent) exponent = least_exponent;
  const double rounded = ldexp(rint(ldexp(value, mantissa - exponent)), exponent - mantissa);
  if (fabs(rounded) <= largest) return rounded;
  return rounded > 0 ? static_cast<double>(INFINITY) : -static_cast<double>(INFINITY);
}

FMHC_HD inline double round_to_storage(double value, int32_t dtype) {
  switch (dtype) {
    case FMHC_FP32:
      return static_cast<double>(static_cast<float>(value));
    case FMHC_FP64:
      return value;
    case FMHC_FP16:
      return round_to(value, 10, -14, 65504.0);
    default:
      return round_to(value, 7, -126, 3.3895313892515355e38);
  }
}

FMHC_HD inline void store_element(void* data, int64_t index, int32_t dtype, double value) {
  const double rounded = round_to_storage(value, dtype);
  if (dtype == FMHC_FP32) {
    static_cast<float*>(data)[index] = static_cast<float>(rounded);
  } else if (dtype == FMHC_FP64) {
    static_cast<double*>(data)[index] = rounded;
  } else if (dtype == FMHC_BF16) {
    static_cast<uint16_t*>(data)[index] =
        static_cast<uint16_t>(bits_of_float(static_cast<float>(rounded)) >> 16);
  } else {
    const double magnitude = fabs(rounded);
    uint32_t bits = rounded < 0 ? 0x8000u : 0u;
    if (magnitude != magnitude) {
      bits = 0x7e00u;
    } else if (magnitude > 65504.0) {
      bits |= 0x7c00u;
    } else if (magnitude < ldexp(1.0, -14)) {
      bits |= static_cast<uint32_t>(ldexp(magnitude, 24));
    } else {
      const int exponent = ilogb(magnitude);
      bits |= static_cast<uint32_t>((exponent + 15) << 10) +
              (static_cast<uint32_t>(ldexp(magnitude, 10 - exponent)) - 1024u);
    }
    static_cast<uint16_t*>(data)[index] = static_cast<uint16_t>(bits);
  }
}

// Counter-based random numbers: the same index and seed give the same value everywhere.
FMHC_HD inline uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

FMHC_HD inline double uniform(uint64_t seed, uint64_t index) {
  return static_cast<double>(mix64(seed * 0x2545f4914f6cdd1dull + index) >> 11) * 0x1p-53;
}

FMHC_HD inline double gauss(uint64_t seed, uint64_t index) {
  const float a = static_cast<float>(uniform(seed, 2 * index)) + 1e-9f;
  const float b = static_cast<float>(uniform(seed, 2 * index + 1)) * 6.2831853f;
  return static_cast<double>(sqrtf(-2.0f * logf(a)) * cosf(b));
}

}  // namespace fmhc_gpu
