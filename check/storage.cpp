#include "check/storage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace fmhc::check {
namespace {

constexpr Format kFormats[] = {{8, -126, 127, 2}, {11, -14, 15, 2}, {24, -126, 127, 4}, {53, -1022, 1023, 8}};

// Bits of a 16-bit format, from the sign, exponent and significand of an already rounded value.
uint16_t to_bits16(double value, const Format& format) {
  const int stored = format.digits - 1;
  const uint32_t sign = std::signbit(value) ? 0x8000U : 0U;
  const uint32_t infinity = static_cast<uint32_t>(format.max_exponent - format.min_exponent + 2)
                            << static_cast<uint32_t>(stored);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | (1U << (stored - 1)));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  if (value == 0) return static_cast<uint16_t>(sign);
  // Subnormals have exponent field 0 and no leading one: counting in quanta of the exponent covers both.
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const auto quanta = static_cast<uint32_t>(std::ldexp(std::fabs(value), stored - exponent));
  const auto field = static_cast<uint32_t>(exponent - format.min_exponent);
  return static_cast<uint16_t>(sign | ((field << static_cast<uint32_t>(stored)) + quanta));
}

double from_bits16(uint16_t bits, const Format& format) {
  const int stored = format.digits - 1;
  const int field = (bits & 0x7fff) >> stored;
  const int rest = bits & ((1 << stored) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (field == format.max_exponent - format.min_exponent + 2) {
    return rest == 0 ? sign * std::numeric_limits<double>::infinity()
                     : std::numeric_limits<double>::quiet_NaN();
  }
  const int significand = field == 0 ? rest : rest + (1 << stored);
  return sign * std::ldexp(significand, std::max(field, 1) - 1 + format.min_exponent - stored);
}

}  // namespace

const Format* find_format(int32_t dtype) {
  return dtype >= FMHC_BF16 && dtype <= FMHC_FP64 ? &kFormats[dtype - FMHC_BF16] : nullptr;
}

double round_to(double value, int32_t dtype) {
  if (dtype == FMHC_FP64 || !std::isfinite(value) || value == 0) return value;
  const Format& format = *find_format(dtype);
  const int quantum = std::max(std::ilogb(value), format.min_exponent) - (format.digits - 1);
  // Scaling by a power of two is exact, and the default rounding mode takes ties to even.
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  if (std::fabs(rounded) < std::ldexp(1.0, format.max_exponent + 1)) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

double load(const void* data, int32_t dtype, int64_t index) {
  const Format& format = *find_format(dtype);
  const auto* at = static_cast<const std::byte*>(data) + static_cast<size_t>(index) * format.bytes;
  if (dtype == FMHC_FP64) {
    double value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (dtype == FMHC_FP32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  }
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return from_bits16(bits, format);
}

void store(double value, int32_t dtype, void* data, int64_t index) {
  const Format& format = *find_format(dtype);
  auto* at = static_cast<std::byte*>(data) + static_cast<size_t>(index) * format.bytes;
  const double rounded = round_to(value, dtype);
  if (dtype == FMHC_FP64) {
    std::memcpy(at, &rounded, sizeof rounded);
  } else if (dtype == FMHC_FP32) {
    const auto narrow = static_cast<float>(rounded);
    std::memcpy(at, &narrow, sizeof narrow);
  } else {
    const uint16_t bits = to_bits16(rounded, format);
    std::memcpy(at, &bits, sizeof bits);
  }
}

}  // namespace fmhc::check
