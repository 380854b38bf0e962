// Every rule, one at a time: what it lets pass and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "check/check.h"
#include "check/compare.h"
#include "check/logits.h"
#include "check/statistics.h"
#include "check/storage.h"

namespace fmhc::check {
namespace {

const double kNan = std::nan("");
const double kInfinity = std::numeric_limits<double>::infinity();

std::string failed(const TensorReport& report) {
  return report.passed() ? "" : report.failed_rule();
}

Values normal_values(size_t count, uint32_t seed = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  Values values(count);
  for (double& value : values) value = normal(engine);
  return values;
}

Values rounded(Values values, int32_t dtype) {
  for (double& value : values) value = round_to(value, dtype);
  return values;
}

TEST(Rules, BoundNamesTheWorstElement) {
  TensorReport blank;
  blank.tensor = "comb_mix";
  blank.shape = {2, 2, 2};
  TensorReport report = blank;
  const Values wanted = {1, 2, 3, 4, 5, 6, 7, 8};
  Values got = wanted;
  got[1] += 0.25;   // at its bound
  got[2] += 0.125;  // half of it
  const Values bound(8, 0.25);
  compare_bound(got, wanted, bound, &report);
  EXPECT_EQ(failed(report), "");
  EXPECT_EQ(report.worst, 1);
  EXPECT_DOUBLE_EQ(report.ratio, 1);
  EXPECT_DOUBLE_EQ(report.max_abs, 0.25);
  got[6] += 0.26;
  report = blank;
  compare_bound(got, wanted, bound, &report);
  EXPECT_EQ(failed(report), "bound");
  EXPECT_EQ(report.worst_index(), (std::vector<int64_t>{1, 1, 0}));
  EXPECT_EQ(report.violations, 1);
  EXPECT_NE(report.text().find("comb_mix[1, 1, 0]: got 7.26, wanted 7"), std::string::npos) << report.text();
}

TEST(Rules, NanAndInfinityMustBeInTheSamePlaces) {
  const Values wanted = {1, kNan, kInfinity, -kInfinity};
  const Values bound(4, 1);
  TensorReport same;
  compare_bound(wanted, wanted, bound, &same);
  EXPECT_EQ(failed(same), "");
  int cases = 0;
  for (size_t i = 0; i < 4; ++i) {
    for (const double other : {kNan, kInfinity, -kInfinity, 1.0}) {
      Values got = wanted;
      got[i] = other;
      if (other == wanted[i] || (std::isnan(other) && std::isnan(wanted[i]))) continue;
      TensorReport by_bound, by_interval;
      compare_bound(got, wanted, bound, &by_bound);
      compare_interval(got, wanted, wanted, wanted, &by_interval);
      EXPECT_EQ(failed(by_bound), "nan and infinity") << i << " " << other;
      EXPECT_EQ(failed(by_interval), "nan and infinity") << i << " " << other;
      EXPECT_EQ(by_bound.worst, static_cast<int64_t>(i));
      ++cases;
    }
  }
  EXPECT_EQ(cases, 12);
}

TEST(Rules, ContainmentIsToTheUnit) {
  // Far from a boundary only the rounded value passes, next to one both neighbours do.
  const Values wanted = {1.001, 1 + 0x1p-8};
  const Values low = {1, 1}, high = {1, 1 + 0x1p-7};
  for (const auto& [first, second, verdict] : {std::tuple{1.0, 1.0, ""},
                                               {1.0, 1 + 0x1p-7, ""},
                                               {1 + 0x1p-7, 1.0, "containment"},
                                               {1.0, 1 - 0x1p-8, "containment"}}) {
    TensorReport report;
    compare_interval({first, second}, wanted, low, high, &report);
    EXPECT_EQ(failed(report), verdict) << first << " " << second;
  }
}

TEST(Rules, EqualAndCount) {
  TensorReport equal, different, shorter;
  compare_equal({0.0, 1.0}, {-0.0, 1.0}, &equal);
  compare_equal({0.0, 1.0}, {0.0, std::nextafter(1.0, 2.0)}, &different);
  compare_equal({0.0}, {0.0, 1.0}, &shorter);
  EXPECT_EQ(failed(equal), "");
  EXPECT_EQ(failed(different), "equal");
  EXPECT_EQ(failed(shorter), "element count");
}

TEST(Rules, NormShowsTheFarthestElement) {
  const Values wanted = {3, 4, 0, 0};
  TensorReport within, beyond, nan;
  compare_norm({3, 4, 0.3, -0.4}, wanted, 0.1001, &within);
  EXPECT_EQ(failed(within), "");
  EXPECT_DOUBLE_EQ(within.relative_norm, 0.1);
  EXPECT_EQ(within.worst, 3);
  compare_norm({3, 4, 0.3, -0.4}, wanted, 0.099, &beyond);
  EXPECT_EQ(failed(beyond), "relative norm");
  EXPECT_GT(beyond.ratio, 1);
  compare_norm({3, 4, kNan, 0.1}, wanted, 0.5, &nan);
  EXPECT_EQ(failed(nan), "nan and infinity");
  EXPECT_EQ(nan.worst, 2);
}

TEST(Rules, OneSidedRoundingIsSeen) {
  const Values wanted = normal_values(4096);
  const Values none(4096, 0), size = magnitudes(wanted);
  Values cut = wanted;
  for (double& value : cut) {
    const double nearest = round_to(value, FMHC_BF16);
    value = std::fabs(nearest) <= std::fabs(value) ? nearest : round_to(2 * value - nearest, FMHC_BF16);
  }
  TensorReport good, bad;
  judge_rounding(rounded(wanted, FMHC_BF16), wanted, none, size, FMHC_BF16, true, &good);
  EXPECT_EQ(failed(good), "");
  EXPECT_EQ(good.outcomes.size(), 2U);
  judge_rounding(cut, wanted, none, size, FMHC_BF16, true, &bad);
  ASSERT_EQ(bad.outcomes.size(), 2U);
  EXPECT_FALSE(bad.outcomes[0].holds);  // rms error
  EXPECT_FALSE(bad.outcomes[1].holds);  // misrounded elements
}

TEST(Rules, SignBalance) {
  const Values wanted = normal_values(4096);
  Values up = wanted;
  for (double& value : up) value = std::nextafter(round_to(value, FMHC_FP32), 10);
  TensorReport balanced, lifted, exact;
  judge_signs(rounded(wanted, FMHC_FP32), wanted, &balanced);
  judge_signs(up, wanted, &lifted);
  judge_signs(wanted, wanted, &exact);
  EXPECT_EQ(failed(balanced), "");
  EXPECT_EQ(failed(exact), "");
  for (size_t i = 0; i < up.size(); ++i) up[i] = wanted[i] + std::fabs(wanted[i]) * 1e-9;
  TensorReport biased;
  judge_signs(up, wanted, &biased);
  EXPECT_EQ(failed(biased), "sign balance");
}

TEST(Rules, NormGainBiasAndPlainChain) {
  const Values wanted = normal_values(2048);
  Values off = wanted;
  for (double& value : off) value *= 1 + 4e-6;
  TensorReport report;
  compare_bound(off, wanted, Values(2048, 1), &report);
  judge_norm(5e-6, &report);
  EXPECT_EQ(failed(report), "");
  judge_gain(off, wanted, 5e-6, &report);
  judge_bias(off, wanted, 5e-6, &report);
  EXPECT_EQ(failed(report), "");
  TensorReport norm = report, gain = report, bias = report, plain;
  judge_norm(3e-6, &norm);
  EXPECT_EQ(failed(norm), "relative norm");
  judge_gain(off, wanted, 3e-6, &gain);
  EXPECT_EQ(failed(gain), "gain");
  judge_bias(off, wanted, 3e-6, &bias);
  EXPECT_EQ(failed(bias), "bias");
  judge_against_plain(rounded(wanted, FMHC_FP32), wanted, rounded(wanted, FMHC_FP32), &plain);
  EXPECT_EQ(plain.outcomes.size(), 1U);
  EXPECT_EQ(failed(plain), "");
  judge_against_plain(off, wanted, rounded(wanted, FMHC_FP32), &plain);
  EXPECT_EQ(failed(plain), "rms error to the plain chain's");
}

TEST(Rules, EmptyReportsDoNotPass) {
  EXPECT_FALSE(Report{}.passed());
  EXPECT_FALSE((Report{"no oracle", {TensorReport{}}}.passed()));
}

}  // namespace
}  // namespace fmhc::check
