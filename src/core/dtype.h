// Storage types and their conversions. Narrowing rounds to nearest, ties to even, directly from double: going
// through float first would round twice. NaN stays NaN (quiet), overflow gives infinity, subnormals are kept.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "flashmhc/flashmhc.h"

namespace fmhc {

struct Bf16 {
  uint16_t bits;
};
struct Fp16 {
  uint16_t bits;
};

constexpr int32_t dtype_bytes(int32_t dtype) {
  switch (dtype) {
    case FMHC_BF16:
    case FMHC_FP16:
      return 2;
    case FMHC_FP32:
      return 4;
    case FMHC_FP64:
      return 8;
    default:
      return 0;
  }
}

constexpr const char* dtype_name(int32_t dtype) {
  switch (dtype) {
    case FMHC_BF16:
      return "bf16";
    case FMHC_FP16:
      return "fp16";
    case FMHC_FP32:
      return "fp32";
    case FMHC_FP64:
      return "fp64";
    default:
      return "unknown dtype";
  }
}

namespace detail {

// Rounds a finite or infinite magnitude to `mantissa_bits` stored bits with the given smallest normal
// exponent.
inline double round_to_grid(double value, int mantissa_bits, int min_exponent) {
  if (!std::isfinite(value) || value == 0.0) return value;
  const int exponent = std::max(std::ilogb(value), min_exponent);
  const double ulp = std::ldexp(1.0, exponent - mantissa_bits);
  return std::nearbyint(value / ulp) *
         ulp;  // exact scaling; nearbyint rounds ties to even in the default mode
}

}  // namespace detail

inline float widen(Bf16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

inline float widen(Fp16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1fu;
  const uint32_t mantissa = value.bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 0x7f800000u : (exponent + 112u) << 23;
  return std::bit_cast<float>(sign | wide | (mantissa << 13));
}

inline float widen(float value) {
  return value;
}
inline double widen(double value) {
  return value;
}

template <typename Storage>
Storage narrow(double value);

template <>
inline double narrow<double>(double value) {
  return value;
}

template <>
inline float narrow<float>(double value) {
  return static_cast<float>(value);
}

template <>
inline Bf16 narrow<Bf16>(double value) {
  if (std::isnan(value)) return Bf16{static_cast<uint16_t>(std::signbit(value) ? 0xffc0u : 0x7fc0u)};
  const double rounded = detail::round_to_grid(value, 7, -126);
  return Bf16{static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(rounded)) >> 16)};
}

template <>
inline Fp16 narrow<Fp16>(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000u : 0u;
  if (std::isnan(value)) return Fp16{static_cast<uint16_t>(sign | 0x7e00u)};
  const double magnitude = std::fabs(detail::round_to_grid(value, 10, -14));
  if (magnitude > 65504.0) return Fp16{static_cast<uint16_t>(sign | 0x7c00u)};
  const uint32_t wide = std::bit_cast<uint32_t>(static_cast<float>(magnitude));
  const uint32_t bits =
      magnitude < 0x1p-14 ? static_cast<uint32_t>(magnitude * 0x1p24) : (wide - (112u << 23)) >> 13;
  return Fp16{static_cast<uint16_t>(sign | bits)};
}

}  // namespace fmhc
