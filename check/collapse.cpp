#include "check/collapse.h"

#include <algorithm>

#include "check/compare.h"
#include "check/statistics.h"
#include "check/storage.h"

namespace fmhc::check {
namespace {

// Values before the last rounding: exact, how far each may be off, and the magnitudes of the terms.
struct Collapsed {
  Values exact, slack, magnitude;
};

std::string run_contract(const Case& call, Values residual, Values mix, const Reference& reference,
                         Values* out) {
  Case contract = as_operator(call, FMHC_CONTRACT);
  contract.problem.carried_pre = 1;
  contract.in.residual = std::move(residual);
  contract.in.pre_in = std::move(mix);
  RunResult result = reference(contract);
  *out = std::move(result.out.layer_input);
  return result.code == FMHC_OK ? std::string() : result.text;
}

std::string make_row(const CollapseInput& input, const Reference& reference, Collapsed* row) {
  const Case& call = *input.call;
  const Values size = magnitudes(call.in.residual);
  std::string error = run_contract(call, call.in.residual, input.mix, reference, &row->exact);
  if (error.empty()) error = run_contract(call, size, magnitudes(input.mix), reference, &row->magnitude);
  if (!error.empty()) return error;
  const double unit = kUnit * roundoff_scale(call.problem.residual_dtype);
  const double roundings = static_cast<double>(call.problem.streams + 1);
  row->slack.resize(row->magnitude.size());
  for (size_t i = 0; i < row->slack.size(); ++i) row->slack[i] = roundings * unit * row->magnitude[i];
  if (input.mix_error.empty()) return {};
  Values propagated;
  error = run_contract(call, size, input.mix_error, reference, &propagated);
  if (!error.empty()) return error;
  for (size_t i = 0; i < row->slack.size(); ++i) row->slack[i] += propagated[i];
  return {};
}

struct Factor {
  double low, exact, high;
};

// Of the RMS factor of one token.
Factor norm_factor(const Case& call, const Collapsed& row, size_t begin, const Arithmetic& arithmetic) {
  const auto hidden = static_cast<size_t>(call.problem.hidden);
  const bool unrounded = call.problem.norm == FMHC_NORM_ENGINE;
  const int32_t dtype = call.problem.residual_dtype;
  const double unit = kUnit * roundoff_scale(dtype);
  double square = 0, error = 0;
  for (size_t i = begin; i < begin + hidden; ++i) {
    const double y = row.exact[i];
    const double centre = unrounded ? y : round_to(y, dtype);
    double low = y - row.slack[i], high = y + row.slack[i];
    if (!unrounded) {
      low = round_to(low, dtype);
      high = round_to(high, dtype);
    }
    square += centre * centre;
    error += std::max(std::fabs(low * low - centre * centre), std::fabs(high * high - centre * centre));
  }
  error += static_cast<double>(arithmetic.chain + 2) * unit * square;
  const auto count = static_cast<double>(hidden);
  const auto eps = static_cast<double>(call.problem.consts.norm_eps);
  const auto factor = [&](double sum) { return 1 / std::sqrt(sum / count + eps); };
  return {factor(square + error), factor(square), factor(std::max(square - error, 0.0))};
}

// Replaces the collapse by its RMSNorm.
void normalise(const Case& call, const Arithmetic& arithmetic, Collapsed* row) {
  const auto hidden = static_cast<size_t>(call.problem.hidden);
  const int32_t dtype = call.problem.residual_dtype;
  const double unit = kUnit * roundoff_scale(dtype);
  for (size_t t = 0; t < static_cast<size_t>(call.tokens); ++t) {
    const size_t begin = t * hidden;
    const Factor factor = norm_factor(call, *row, begin, arithmetic);
    for (size_t h = 0; h < hidden; ++h) {
      const size_t i = begin + h;
      const double weight = call.in.norm_weight[h];
      const double y = row->exact[i];
      const double centre = round_to(y, dtype) * weight * factor.exact;
      double reach = 0;
      for (const double end : {round_to(y - row->slack[i], dtype), round_to(y + row->slack[i], dtype)}) {
        for (const double f : {factor.low, factor.high}) {
          reach = std::max(reach, std::fabs(end * weight * f - centre));
        }
      }
      row->exact[i] = centre;
      row->slack[i] = reach + kNormRoundings * unit * std::fabs(centre);
      row->magnitude[i] = std::fabs(centre);
    }
  }
}

}  // namespace

std::string check_layer_input(const CollapseInput& input, const Values& got, const Arithmetic& arithmetic,
                              bool statistics, const Reference& reference, TensorReport* report) {
  const Case& call = *input.call;
  const int32_t dtype = call.problem.residual_dtype;
  const bool normed = call.problem.norm != FMHC_NORM_NONE;
  Collapsed row;
  const std::string error = make_row(input, reference, &row);
  if (!error.empty()) return error;
  if (normed) normalise(call, arithmetic, &row);
  Values low(row.exact.size()), high(row.exact.size());
  for (size_t i = 0; i < low.size(); ++i) {
    low[i] = round_to(row.exact[i] - row.slack[i], dtype);
    high[i] = round_to(row.exact[i] + row.slack[i], dtype);
  }
  compare_interval(got, row.exact, low, high, report);
  const bool narrow = find_format(dtype)->bytes == 2;
  if (!statistics || got.size() != row.exact.size()) return {};
  const bool exact_inputs = input.mix_error.empty() && !normed;
  if (narrow) judge_rounding(got, row.exact, row.slack, row.magnitude, dtype, exact_inputs, report);
  // In fp32 an error of the mix or of the RMS factor is one-sided over a whole token.
  if (narrow || exact_inputs) judge_signs(got, row.exact, report);
  return {};
}

}  // namespace fmhc::check
