#include "check/statistics.h"

#include <cmath>

#include "check/limits.h"
#include "check/storage.h"

namespace fmhc::check {
namespace {

void add(const char* rule, double measured, double limit, TensorReport* report) {
  report->outcomes.push_back({rule, measured, limit, measured <= limit});
}

bool both_finite(double a, double b) {
  return std::isfinite(a) && std::isfinite(b);
}

}  // namespace

void judge_rounding(const Values& got, const Values& wanted, const Values& slack, const Values& magnitude,
                    int32_t dtype, bool exact_inputs, TensorReport* report) {
  double squares = 0, rounded_squares = 0, slack_squares = 0;
  int64_t plain = 0, misrounded = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double rounded = round_to(wanted[i], dtype);
    if (!both_finite(got[i], rounded)) continue;
    squares += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    rounded_squares += (rounded - wanted[i]) * (rounded - wanted[i]);
    slack_squares += slack[i] * slack[i];
    if (std::fabs(wanted[i]) < kNoCancellation * magnitude[i]) continue;
    ++plain;
    if (got[i] != rounded) ++misrounded;
  }
  // Errors before the rounding are independent of those by it, and where terms cancel they dominate.
  const double allowed = std::sqrt(kRmsRatio * kRmsRatio * rounded_squares + slack_squares);
  if (allowed > 0) add("rms error", std::sqrt(squares) / allowed, 1, report);
  if (!exact_inputs) return;
  // Counting noise of six standard deviations, so that a small tensor may have its single tie.
  const double expected = misrounded_share(dtype) * static_cast<double>(plain);
  add("misrounded elements", static_cast<double>(misrounded), expected + 6 * std::sqrt(expected) + 2, report);
}

void judge_signs(const Values& got, const Values& wanted, TensorReport* report) {
  int64_t above = 0, below = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!both_finite(got[i], wanted[i])) continue;
    if (got[i] > wanted[i]) ++above;
    if (got[i] < wanted[i]) ++below;
  }
  if (above + below == 0) return;
  const double score = static_cast<double>(above - below) / std::sqrt(static_cast<double>(above + below));
  add("sign balance", std::fabs(score), kSignDeviations, report);
}

void judge_against_plain(const Values& got, const Values& wanted, const Values& plain, TensorReport* report) {
  double squares = 0, plain_squares = 0;
  int64_t count = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!both_finite(got[i], wanted[i])) continue;
    squares += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    plain_squares += (plain[i] - wanted[i]) * (plain[i] - wanted[i]);
    ++count;
  }
  if (count < kFewestForRatio || plain_squares == 0) return;
  add("rms error to the plain chain's", std::sqrt(squares / plain_squares), kPlainRmsRatio, report);
}

void judge_norm(double limit, TensorReport* report) {
  if (report->count >= kFewestForNorm) add("relative norm", report->relative_norm, limit, report);
}

void judge_gain(const Values& got, const Values& wanted, double limit, TensorReport* report) {
  double cross = 0, square = 0;
  int64_t count = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!both_finite(got[i], wanted[i])) continue;
    cross += (got[i] - wanted[i]) * wanted[i];
    square += wanted[i] * wanted[i];
    ++count;
  }
  if (count >= kFewestForNorm && square > 0) add("gain", std::fabs(cross / square), limit, report);
}

void judge_bias(const Values& got, const Values& wanted, double limit, TensorReport* report) {
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!both_finite(got[i], wanted[i]) || wanted[i] == 0) continue;
    sum += (got[i] - wanted[i]) / wanted[i];
    ++count;
  }
  if (count >= kFewestForNorm) add("bias", std::fabs(sum / static_cast<double>(count)), limit, report);
}

void judge_max(double measured, double limit, const char* rule, TensorReport* report) {
  add(rule, measured, limit, report);
}

double root_mean_square(const Values& values) {
  double squares = 0;
  int64_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++count;
  }
  return count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
}

}  // namespace fmhc::check
