// Conversions of bf16 and fp16: all 65536 patterns against their definition, and every tie and both of its
// neighbours in double. The expected values are computed from the bit fields, not by the functions under
// test.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/dtype.h"

namespace fmhc {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr uint32_t kPatterns = 1u << 16;

struct Format {
  int exponent_bits, mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  bool is_nan(uint32_t bits) const { return (bits & 0x7fffu) > infinity(); }

  // The number that the bits stand for.
  double value(uint32_t bits) const {
    const uint32_t magnitude = bits & 0x7fffu;
    const auto exponent = static_cast<int>(magnitude >> mantissa_bits);
    const auto mantissa = static_cast<double>(magnitude & ((1u << mantissa_bits) - 1));
    const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
    if (is_nan(bits)) return kNan;
    if (magnitude == infinity()) return sign * kInf;
    const double hidden = exponent == 0 ? 0 : std::ldexp(1.0, mantissa_bits);
    return sign * std::ldexp(hidden + mantissa, (exponent == 0 ? 1 : exponent) - bias() - mantissa_bits);
  }
};

constexpr Format kBf16 = {8, 7};
constexpr Format kFp16 = {5, 10};

template <typename T>
class StorageTypes : public testing::Test {};
using Types = testing::Types<Bf16, Fp16>;
TYPED_TEST_SUITE(StorageTypes, Types);

template <typename T>
constexpr const Format& format() {
  return std::is_same_v<T, Bf16> ? kBf16 : kFp16;
}

template <typename T>
T pattern(uint32_t bits) {
  return T{static_cast<uint16_t>(bits)};
}

TYPED_TEST(StorageTypes, EveryPatternWidensToItsValue) {
  uint32_t nans = 0;
  for (uint32_t bits = 0; bits < kPatterns; ++bits) {
    const double wanted = format<TypeParam>().value(bits);
    const auto got = static_cast<double>(widen(pattern<TypeParam>(bits)));
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ++nans;
    } else {
      ASSERT_EQ(std::bit_cast<uint64_t>(got), std::bit_cast<uint64_t>(wanted)) << bits;
    }
  }
  EXPECT_EQ(nans, 2 * ((1u << format<TypeParam>().mantissa_bits) - 1));
}

TYPED_TEST(StorageTypes, EveryPatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < kPatterns; ++bits) {
    const auto back = narrow<TypeParam>(static_cast<double>(widen(pattern<TypeParam>(bits)))).bits;
    if (format<TypeParam>().is_nan(bits)) {
      ASSERT_TRUE(format<TypeParam>().is_nan(back)) << bits;
      ASSERT_EQ(back & 0x8000u, bits & 0x8000u) << "the sign of a NaN stays";
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

// Between any two neighbours, subnormals and the step to infinity included: the middle goes to the even one,
// a hair beside it to the nearer one. A detour over float would fail the hairs.
TYPED_TEST(StorageTypes, EveryTieGoesToEven) {
  const Format& f = format<TypeParam>();
  uint32_t ties = 0;
  for (uint32_t low = 0; low < f.infinity(); ++low) {
    const uint32_t high = low + 1;
    const double below = f.value(low);
    // The place of infinity on the grid: one step above the largest finite value.
    const double above = high == f.infinity() ? 2 * below - f.value(low - 1) : f.value(high);
    const double middle = below + (above - below) / 2;
    for (const uint32_t sign : {0u, 0x8000u}) {
      const double s = sign != 0 ? -1 : 1;
      ASSERT_EQ(narrow<TypeParam>(s * middle).bits, sign | (low % 2 == 0 ? low : high)) << low;
      ASSERT_EQ(narrow<TypeParam>(s * std::nextafter(middle, 0)).bits, sign | low) << low;
      ASSERT_EQ(narrow<TypeParam>(s * std::nextafter(middle, kInf)).bits, sign | high) << low;
    }
    ++ties;
  }
  EXPECT_EQ(ties, f.infinity());
}

TYPED_TEST(StorageTypes, EndsOfTheRange) {
  const Format& f = format<TypeParam>();
  EXPECT_EQ(narrow<TypeParam>(0.0).bits, 0);
  EXPECT_EQ(narrow<TypeParam>(-0.0).bits, 0x8000);
  EXPECT_EQ(narrow<TypeParam>(5e-324).bits, 0);
  EXPECT_EQ(narrow<TypeParam>(-5e-324).bits, 0x8000);
  EXPECT_EQ(narrow<TypeParam>(std::numeric_limits<double>::max()).bits, f.infinity());
  EXPECT_EQ(narrow<TypeParam>(-kInf).bits, f.infinity() | 0x8000u);
  EXPECT_TRUE(f.is_nan(narrow<TypeParam>(kNan).bits));
  // A NaN whose payload sits in the low bits only must not become an infinity.
  EXPECT_TRUE(f.is_nan(narrow<TypeParam>(std::bit_cast<double>(uint64_t{0x7ff0000000000001})).bits));
}

TEST(StorageTypes, FloatAndDoublePassThrough) {
  EXPECT_EQ(narrow<float>(1.0 + 0x1p-24), 1.0f);
  EXPECT_EQ(narrow<float>(1.0 + 0x1p-24 + 0x1p-40), 1.0f + 0x1p-23f);
  EXPECT_EQ(narrow<double>(0.1), 0.1);
  EXPECT_EQ(widen(0.1f), 0.1f);
}

TEST(StorageTypes, SizesAndNames) {
  const struct {
    int32_t dtype, bytes;
    const char* name;
  } rows[] = {{FMHC_BF16, 2, "bf16"}, {FMHC_FP16, 2, "fp16"},  {FMHC_FP32, 4, "fp32"},
              {FMHC_FP64, 8, "fp64"}, {0, 0, "unknown dtype"}, {5, 0, "unknown dtype"}};
  for (const auto& row : rows) {
    EXPECT_EQ(dtype_bytes(row.dtype), row.bytes);
    EXPECT_STREQ(dtype_name(row.dtype), row.name);
  }
}

}  // namespace
}  // namespace fmhc
