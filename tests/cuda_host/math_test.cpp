// The device arithmetic on the host: splitting of weights, coefficients, both forms of the Sinkhorn.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "backends/cuda/common/math.cuh"
#include "backends/cuda/common/slices.cuh"
#include "ops/slices.h"

namespace fmhc::cuda {
namespace {

using Matrix = float[4][4];

float piece_value(uint16_t bits) {
  return bits_float(static_cast<uint32_t>(bits) << 16);
}

// Sinkhorn in double, straight from the definition.
void sinkhorn_oracle(const Matrix& logits, int iterations, double eps, double (&c)[4][4]) {
  for (int j = 0; j < 4; ++j) {
    double most = logits[j][0];
    for (int k = 1; k < 4; ++k) most = std::max(most, double{logits[j][k]});
    double sum = 0;
    for (int k = 0; k < 4; ++k) sum += c[j][k] = std::exp(logits[j][k] - most);
    for (int k = 0; k < 4; ++k) c[j][k] = c[j][k] / sum + eps;
  }
  for (int step = 0; step < iterations; ++step) {
    for (int j = 0; step > 0 && j < 4; ++j) {
      const double sum = c[j][0] + c[j][1] + c[j][2] + c[j][3] + eps;
      for (int k = 0; k < 4; ++k) c[j][k] /= sum;
    }
    for (int k = 0; k < 4; ++k) {
      const double sum = c[0][k] + c[1][k] + c[2][k] + c[3][k] + eps;
      for (int j = 0; j < 4; ++j) c[j][k] /= sum;
    }
  }
}

TEST(CudaMath, ThreePiecesAreExactAndTwoKeepSixteenBits) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  int cases = 0;
  for (int exponent = -100; exponent <= 127; exponent += 7) {
    for (int draw = 0; draw < 200; ++draw, ++cases) {
      const float value = std::ldexp(normal(random), exponent);
      if (!std::isfinite(value)) continue;
      uint16_t piece[3];
      split_weight(value, piece);
      const double two = double{piece_value(piece[0])} + double{piece_value(piece[1])};
      EXPECT_EQ(two + double{piece_value(piece[2])}, double{value});
      EXPECT_LE(std::fabs(two - double{value}), std::ldexp(std::fabs(double{value}), -16));
    }
  }
  EXPECT_EQ(cases, 33 * 200);
}

TEST(CudaMath, PiecesOfTheEndsOfTheRange) {
  const float most = std::numeric_limits<float>::max();
  uint16_t piece[3];
  for (const float value : {most, -most, 0.0f, 1.0f}) {
    split_weight(value, piece);
    EXPECT_EQ(double{piece_value(piece[0])} + double{piece_value(piece[1])} + double{piece_value(piece[2])},
              double{value});
  }
  split_weight(std::numeric_limits<float>::infinity(), piece);
  EXPECT_TRUE(std::isinf(piece_value(piece[0])));
  EXPECT_EQ(piece_value(piece[1]), 0.0f);
  split_weight(std::numeric_limits<float>::quiet_NaN(), piece);
  EXPECT_TRUE(std::isnan(piece_value(piece[0])));
  split_weight(bits_float(0x7f800001u), piece);  // a NaN whose payload lies in the lower half
  EXPECT_TRUE(std::isnan(piece_value(piece[0])));
}

TEST(CudaMath, SinkhornByScalingMeetsTheDefinition) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  double worst = 0;
  int cases = 0;
  for (const float eps : {kScalingEpsLeast, 1e-6f, 1e-4f, kScalingEpsMost}) {
    for (const float scale : {0.1f, 1.0f, 4.0f, 8.0f, 40.0f, 100.0f}) {
      for (const int iterations : {1, 2, 20}) {
        for (int draw = 0; draw < 50; ++draw, ++cases) {
          Matrix c;
          for (auto& row : c) {
            for (float& entry : row) entry = scale * normal(random);
          }
          double expected[4][4];
          sinkhorn_oracle(c, iterations, double{eps}, expected);
          sinkhorn_scaling(c, iterations, eps);
          for (int j = 0; j < 4; ++j) {
            for (int k = 0; k < 4; ++k) worst = std::max(worst, std::fabs(double{c[j][k]} - expected[j][k]));
          }
        }
      }
    }
  }
  EXPECT_LE(worst, 1e-6);
  EXPECT_GT(worst, 0);
  EXPECT_EQ(cases, 4 * 6 * 3 * 50);
}

TEST(CudaMath, SinkhornPlainMeetsTheDefinitionWithoutEps) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  double worst = 0;
  for (int draw = 0; draw < 500; ++draw) {
    Matrix c;
    for (auto& row : c) {
      for (float& entry : row) entry = 3 * normal(random);
    }
    double expected[4][4];
    sinkhorn_oracle(c, 20, 0, expected);
    sinkhorn_plain<4>(c, 4, 20, 0);
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 4; ++k) worst = std::max(worst, std::fabs(double{c[j][k]} - expected[j][k]));
    }
  }
  EXPECT_LE(worst, 1e-6);
}

TEST(CudaMath, NonFiniteLogitsStayVisible) {
  Matrix c = {{1, 2, 3, 4}, {0, std::numeric_limits<float>::quiet_NaN(), 1, 2}, {1, 0, 0, 0}, {0, 1, 0, 0}};
  sinkhorn_scaling(c, 20, 1e-6f);
  EXPECT_TRUE(std::isnan(c[1][1]));
  EXPECT_EQ(sigmoid(-200.0f), 0.0f);
  EXPECT_EQ(sigmoid(200.0f), 1.0f);
}

TEST(CudaMath, SlicesAreThoseOfThePlanner) {
  int cases = 0;
  for (const int64_t flat : {1, 63, 64, 65, 1000, 16384, 28672}) {
    const auto most = static_cast<int32_t>((flat + 63) / 64);
    for (int32_t splits = 1; splits <= most; splits += 1 + splits / 3) {
      int64_t covered = 0;
      for (int32_t index = 0; index < splits; ++index, ++cases) {
        const Range<int64_t> mine = slice_columns(flat, splits, index);
        const fmhc::Slice theirs = fmhc::slice_of(flat, splits, index);
        EXPECT_EQ(mine.begin, theirs.begin);
        EXPECT_EQ(mine.end, theirs.end);
        EXPECT_EQ(mine.begin, covered);
        covered = mine.end;
      }
      EXPECT_EQ(covered, flat);
    }
  }
  EXPECT_GT(cases, 1000);
}

}  // namespace
}  // namespace fmhc::cuda
