// The storage formats of the bounds: every 16-bit pattern, and the roundings at ties and at the ends.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "check/storage.h"

namespace fmhc::check {
namespace {

TEST(Storage, EveryPatternOf16BitsSurvives) {
  int patterns = 0;
  for (const int32_t dtype : {FMHC_BF16, FMHC_FP16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto pattern = static_cast<uint16_t>(bits);
      const double value = load(&pattern, dtype, 0);
      uint16_t back = 0;
      store(value, dtype, &back, 0);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(load(&back, dtype, 0)));
      } else {
        ASSERT_EQ(back, pattern) << dtype;
      }
      ++patterns;
    }
  }
  EXPECT_EQ(patterns, 131072);
}

TEST(Storage, BfloatIsTheUpperHalfOfFloat) {
  for (uint32_t bits = 0; bits < 0x7f80; bits += 7) {
    const auto pattern = static_cast<uint16_t>(bits);
    ASSERT_EQ(load(&pattern, FMHC_BF16, 0), static_cast<double>(std::bit_cast<float>(bits << 16)));
  }
}

TEST(Storage, RoundsToNearestTiesToEven) {
  struct Point {
    int32_t dtype;
    double value, rounded;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const Point points[] = {
      {FMHC_BF16, 1 + 0x1p-8, 1},
      {FMHC_BF16, 1 + 0x3p-8, 1 + 0x1p-6},
      {FMHC_BF16, -(1 + 0x1p-8), -1},
      {FMHC_BF16, 1 + 0x1p-8 + 0x1p-50, 1 + 0x1p-7},
      {FMHC_BF16, 0x1p-134, 0},
      {FMHC_BF16, 0x1.8p-134, 0x1p-133},
      {FMHC_BF16, 0x1.fefp127, 0x1.fep127},
      {FMHC_BF16, 0x1.ffp127, infinity},
      {FMHC_FP16, 2049, 2048},
      {FMHC_FP16, 2051, 2052},
      {FMHC_FP16, 65519, 65504},
      {FMHC_FP16, 65520, infinity},
      {FMHC_FP16, 0x1p-25, 0},
      {FMHC_FP16, 0x1.8p-25, 0x1p-24},
      {FMHC_FP32, 1 + 0x1p-24, 1},
      {FMHC_FP32, 1 + 0x1.8p-24, 1 + 0x1p-23},
      {FMHC_FP32, 1e300, infinity},
      {FMHC_FP64, 1 + 0x1p-52, 1 + 0x1p-52},
  };
  for (const Point& point : points) {
    EXPECT_EQ(round_to(point.value, point.dtype), point.rounded) << point.dtype << " " << point.value;
  }
  EXPECT_TRUE(std::isnan(round_to(std::nan(""), FMHC_BF16)));
}

TEST(Storage, FloatRoundsLikeTheProcessor) {
  for (double value = 1e-46; value < 1e39; value *= -1.3717) {
    ASSERT_EQ(round_to(value, FMHC_FP32), static_cast<double>(static_cast<float>(value))) << value;
    if (std::fabs(value) > 1e39) break;
  }
}

}  // namespace
}  // namespace fmhc::check
