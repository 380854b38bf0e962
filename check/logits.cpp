#include "check/logits.h"

#include <algorithm>

namespace fmhc::check {
namespace {

// Error of one sum per unit of its terms' magnitudes.
double chain_error(const Arithmetic& arithmetic, double scale) {
  const double unit = kUnit * scale * (arithmetic.truncating_accumulator ? 2 : 1);
  return static_cast<double>(arithmetic.chain + 2) * unit;
}

// head has one logit a stream: project makes the others of zero weights.
Case as_project(const Case& call) {
  Case project = as_operator(call, FMHC_PROJECT);
  project.problem.projection = call.problem.projection;
  project.in.residual = call.in.residual;
  project.in.fn = call.in.fn;
  project.in.fn.resize(
      static_cast<size_t>(logit_count(project.problem) * call.problem.hidden * call.problem.streams));
  if (call.problem.op != FMHC_PROJECT) project.splits = 1;
  return project;
}

// finish is given its partials: only their addition can go wrong.
Partials given_partials(const Case& call) {
  const double unit = kUnit * roundoff_scale(call.problem.residual_dtype);
  Partials partials{call.in.dot_mix_in, magnitudes(call.in.dot_mix_in), call.in.sqrsum_in, call.in.sqrsum_in};
  const double error = static_cast<double>(call.splits + 1) * unit;
  for (double& bound : partials.dot_bound) bound *= error;
  for (double& bound : partials.sqrsum_bound) bound *= error;
  return partials;
}

// Adds the slices of `values` [S,T,width], and keeps the first `kept` of each row.
Values add_slices(const Values& values, int64_t slices, int64_t tokens, int64_t kept) {
  const auto rows = static_cast<size_t>(tokens);
  const size_t row = rows == 0 ? 0 : values.size() / (static_cast<size_t>(slices) * rows);
  const auto columns = static_cast<size_t>(kept);
  Values sum(rows * columns);
  for (size_t s = 0; s < static_cast<size_t>(slices); ++s) {
    for (size_t t = 0; t < rows; ++t) {
      for (size_t o = 0; o < columns; ++o) sum[t * columns + o] += values[(s * rows + t) * row + o];
    }
  }
  return sum;
}

}  // namespace

Values magnitudes(Values values) {
  for (double& value : values) value = std::fabs(value);
  return values;
}

Case as_operator(const Case& call, int32_t op) {
  Case other;
  other.problem = call.problem;
  other.problem.op = op;
  other.problem.projection = FMHC_CLASS_F;
  other.problem.norm = FMHC_NORM_NONE;
  other.problem.norm_weight_dtype = 0;
  other.problem.carried_pre = 0;
  other.tokens = call.tokens;
  other.splits = call.splits;
  return other;
}

std::string make_partials(const Case& call, const Arithmetic& arithmetic, const Reference& reference,
                          Partials* out) {
  Case project = as_project(call);
  RunResult exact = reference(project);
  if (exact.code != FMHC_OK) return exact.text;
  project.in.residual = magnitudes(std::move(project.in.residual));
  project.in.fn = magnitudes(std::move(project.in.fn));
  RunResult bound = reference(project);
  if (bound.code != FMHC_OK) return bound.text;
  const double scale = roundoff_scale(call.problem.residual_dtype);
  const double sum_error = chain_error(arithmetic, scale);
  const double product_error = class_limits(call.problem.projection).product;
  for (double& value : bound.out.dot_mix) value *= sum_error + product_error;
  for (double& value : bound.out.sqrsum) value *= sum_error;
  *out = {std::move(exact.out.dot_mix), std::move(bound.out.dot_mix), std::move(exact.out.sqrsum),
          std::move(bound.out.sqrsum)};
  return {};
}

std::string make_logits(const Case& call, const Arithmetic& arithmetic, const Reference& reference,
                        Logits* out) {
  Partials partials;
  int64_t slices = 1;
  if (call.problem.op == FMHC_FINISH) {
    partials = given_partials(call);
    slices = call.splits;
  } else {
    const std::string error = make_partials(call, arithmetic, reference, &partials);
    if (!error.empty()) return error;
  }
  const fmhc_problem& problem = call.problem;
  const int64_t n = problem.streams;
  const auto logits = static_cast<size_t>(logit_count(problem));
  const double unit = kUnit * roundoff_scale(problem.residual_dtype);
  const auto columns = static_cast<double>(n * problem.hidden);
  out->dot = add_slices(partials.dot, slices, call.tokens, logit_count(problem));
  out->sqrsum = add_slices(partials.sqrsum, slices, call.tokens, 1);
  const Values dot_error = add_slices(partials.dot_bound, slices, call.tokens, logit_count(problem));
  const Values square_error = add_slices(partials.sqrsum_bound, slices, call.tokens, 1);
  out->z.resize(out->dot.size());
  out->delta.resize(out->dot.size());
  for (size_t t = 0; t < static_cast<size_t>(call.tokens); ++t) {
    const double mean = out->sqrsum[t] / columns + static_cast<double>(problem.consts.rms_eps);
    const double factor = 1 / std::sqrt(mean);
    const double factor_error = mean > 0 ? 0.5 * square_error[t] / columns / mean : 0;
    for (size_t o = 0; o < logits; ++o) {
      const size_t group = std::min<size_t>(o / static_cast<size_t>(n), 2);
      const double gain = factor * call.in.scale[std::min(group, call.in.scale.size() - 1)];
      const size_t i = t * logits + o;
      out->z[i] = out->dot[i] * gain;
      const double logit = std::fabs(out->z[i] + call.in.base[o]);
      out->delta[i] = std::fabs(gain) * dot_error[i] +
                      std::fabs(out->z[i]) * (factor_error + kLogitRoundings * unit) +
                      unit * (1 + arithmetic.exp_ulps) * logit;
    }
  }
  return {};
}

}  // namespace fmhc::check
