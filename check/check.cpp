#include "check/check.h"

#include <algorithm>
#include <utility>

#include "check/collapse.h"
#include "check/compare.h"
#include "check/logits.h"
#include "check/statistics.h"
#include "check/storage.h"

namespace fmhc::check {
namespace {

class Judge {
 public:
  Judge(const Case& call, const Tensors& got, const Options& options)
      : call_(call), got_(got), options_(options), scale_(roundoff_scale(call.problem.residual_dtype)) {}

  Report run() {
    switch (call_.problem.op) {
      case FMHC_EXPAND:
        expand();
        break;
      case FMHC_PROJECT:
        project();
        break;
      case FMHC_POST:
        post();
        break;
      case FMHC_CONTRACT:
        contract();
        break;
      default:
        coefficients();
    }
    return std::move(report_);
  }

 private:
  TensorReport& add(const char* tensor) { return report_.tensors.emplace_back(start_report(tensor, call_)); }

  bool run_reference_case(const Case& call, RunResult* result) {
    *result = options_.reference(call);
    if (result->code != FMHC_OK) report_.error = result->text;
    return result->code == FMHC_OK;
  }

  void expand() {
    RunResult exact;
    if (!run_reference_case(call_, &exact)) return;
    compare_equal(got_.residual_out, exact.out.residual_out, &add("residual_out"));
  }

  void project();
  void post();
  void contract();
  void coefficients();
  void mixes(const Logits& logits, const Tensors& exact);
  void comb(const Logits& logits, const Values& exact);
  void comb_sums(const Values& exact, const Values& bound, TensorReport* report);
  // Standard deviation of the logits from column `begin` on, at least 1.
  double spread(const Logits& logits, size_t begin, size_t end) const;
  Values sigmoid_bound(const Logits& logits, size_t begin, double factor) const;
  void layer_input(Values mix, Values mix_error);
  Values plain_post() const;

  const Case& call_;
  const Tensors& got_;
  const Options& options_;
  const double scale_;
  Report report_;
};

void Judge::project() {
  Partials partials;
  report_.error = make_partials(call_, options_.arithmetic, options_.reference, &partials);
  if (!report_.error.empty()) return;
  const ClassLimits& limits = class_limits(call_.problem.projection);
  TensorReport& dot = add("dot_mix");
  compare_bound(got_.dot_mix, partials.dot, partials.dot_bound, &dot);
  if (options_.statistics && got_.dot_mix.size() == partials.dot.size()) {
    judge_norm(limits.dot_norm * scale_, &dot);
    judge_gain(got_.dot_mix, partials.dot, limits.dot_gain * scale_, &dot);
  }
  TensorReport& sqrsum = add("sqrsum");
  compare_bound(got_.sqrsum, partials.sqrsum, partials.sqrsum_bound, &sqrsum);
  if (options_.statistics && got_.sqrsum.size() == partials.sqrsum.size()) {
    judge_bias(got_.sqrsum, partials.sqrsum, kSquareSumBias * scale_, &sqrsum);
  }
}

// The mix first, the product last, all in fp32.
Values Judge::plain_post() const {
  const auto n = static_cast<size_t>(call_.problem.streams),
             hidden = static_cast<size_t>(call_.problem.hidden);
  Values plain(call_.in.residual.size());
  const auto narrow = [](double value) { return static_cast<float>(value); };
  const auto add = [&](double a, double b, float sum) {
    const float x = narrow(a), y = narrow(b);
    return options_.arithmetic.fused ? std::fma(x, y, sum) : x * y + sum;
  };
  for (size_t t = 0; t < static_cast<size_t>(call_.tokens); ++t) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t h = 0; h < hidden; ++h) {
        float sum = 0;
        for (size_t j = 0; j < n; ++j) {
          sum = add(call_.in.comb_in[(t * n + j) * n + k], call_.in.residual[(t * n + j) * hidden + h], sum);
        }
        sum = add(call_.in.post_in[t * n + k], call_.in.sublayer_output[t * hidden + h], sum);
        plain[(t * n + k) * hidden + h] = static_cast<double>(sum);
      }
    }
  }
  return plain;
}

void Judge::post() {
  RunResult exact, terms;
  if (!run_reference_case(call_, &exact)) return;
  Case absolute = call_;
  for (auto values : {&Tensors::residual, &Tensors::sublayer_output, &Tensors::post_in, &Tensors::comb_in}) {
    absolute.in.*values = magnitudes(std::move(absolute.in.*values));
  }
  if (!run_reference_case(absolute, &terms)) return;
  const int32_t dtype = call_.problem.residual_dtype;
  const Values& wanted = exact.out.residual_out;
  const Values& magnitude = terms.out.residual_out;
  const double error = static_cast<double>(call_.problem.streams + 2) * kUnit * scale_;
  Values slack(wanted.size()), low(wanted.size()), high(wanted.size());
  for (size_t i = 0; i < slack.size(); ++i) {
    slack[i] = error * magnitude[i];
    low[i] = round_to(wanted[i] - slack[i], dtype);
    high[i] = round_to(wanted[i] + slack[i], dtype);
  }
  TensorReport& report = add("residual_out");
  const bool narrow = find_format(dtype)->bytes == 2;
  if (narrow) {
    compare_interval(got_.residual_out, wanted, low, high, &report);
  } else {
    compare_bound(got_.residual_out, wanted, slack, &report);
  }
  if (!options_.statistics || got_.residual_out.size() != wanted.size()) return;
  if (narrow) judge_rounding(got_.residual_out, wanted, slack, magnitude, dtype, true, &report);
  if (dtype == FMHC_FP32) judge_against_plain(got_.residual_out, wanted, plain_post(), &report);
  judge_signs(got_.residual_out, wanted, &report);
}

void Judge::layer_input(Values mix, Values mix_error) {
  TensorReport& report = add("layer_input");
  report_.error = check_layer_input({&call_, std::move(mix), std::move(mix_error)}, got_.layer_input,
                                    options_.arithmetic, options_.statistics, options_.reference, &report);
}

void Judge::contract() {
  if (call_.problem.carried_pre != 0) return layer_input(call_.in.pre_in, {});
  const auto n = static_cast<double>(call_.problem.streams);
  const size_t count = static_cast<size_t>(call_.tokens) * static_cast<size_t>(call_.problem.streams);
  // 1/n is not exact, and means of values on one grid fall on ties often: which way is not to be judged.
  layer_input(Values(count, 1 / n), Values(count, kUnit * scale_ / n));
}

double Judge::spread(const Logits& logits, size_t begin, size_t end) const {
  const auto width = static_cast<size_t>(logit_count(call_.problem));
  Values group;
  for (size_t i = 0; i < logits.z.size(); ++i) {
    if (i % width >= begin && i % width < end) group.push_back(logits.z[i]);
  }
  return std::max(1.0, root_mean_square(group));
}

Values Judge::sigmoid_bound(const Logits& logits, size_t begin, double factor) const {
  const auto n = static_cast<size_t>(call_.problem.streams);
  const auto width = static_cast<size_t>(logit_count(call_.problem));
  Values bound(static_cast<size_t>(call_.tokens) * n);
  for (size_t i = 0; i < bound.size(); ++i) {
    const double delta = logits.delta[i / n * width + begin + i % n];
    bound[i] = std::fabs(factor) * (kSigmoidSlope * delta + kSigmoidTail * scale_);
  }
  return bound;
}

// Entries are not negative, columns sum to what the oracle's do, rows to within the bound of their entries.
void Judge::comb_sums(const Values& exact, const Values& bound, TensorReport* report) {
  const auto n = static_cast<size_t>(call_.problem.streams);
  double least = 0, column_excess = 0, row_ratio = 0;
  for (size_t block = 0; block + n * n <= exact.size(); block += n * n) {
    // A denominator is a column sum plus eps: with a large eps its error shows in the sum.
    const double eps = std::min(1.0, static_cast<double>(call_.problem.consts.sinkhorn_eps));
    const double column_bound = kColumnSum * scale_ + eps * static_cast<double>(n) * bound[block];
    for (size_t a = 0; a < n; ++a) {
      double row = 0, column = 0;
      for (size_t b = 0; b < n; ++b) {
        const size_t along = block + a * n + b, across = block + b * n + a;
        least = std::min(least, got_.comb_mix[along]);
        row += got_.comb_mix[along] - exact[along];
        column += got_.comb_mix[across] - exact[across];
      }
      // Comparisons with NaN are false: a NaN token is the mask's affair.
      if (std::fabs(column) / column_bound > column_excess) column_excess = std::fabs(column) / column_bound;
      const double row_bound = static_cast<double>(n) * bound[block];
      if (std::fabs(row) / row_bound > row_ratio) row_ratio = std::fabs(row) / row_bound;
    }
  }
  judge_max(-least, 0, "negative entry", report);
  judge_max(column_excess, 1, "column sums", report);
  judge_max(row_ratio, 1, "row sums", report);
}

void Judge::comb(const Logits& logits, const Values& exact) {
  const auto n = static_cast<size_t>(call_.problem.streams);
  const auto width = static_cast<size_t>(logit_count(call_.problem));
  const double gain = sinkhorn_gain(call_.problem.streams, call_.problem.consts.sinkhorn_iters);
  Values bound(exact.size());
  for (size_t t = 0; t < static_cast<size_t>(call_.tokens); ++t) {
    const auto first = logits.delta.begin() + static_cast<ptrdiff_t>(t * width + 2 * n);
    const double delta = *std::max_element(first, first + static_cast<ptrdiff_t>(n * n));
    std::fill_n(bound.begin() + static_cast<ptrdiff_t>(t * n * n), n * n,
                gain * delta + kSinkhornTail * scale_);
  }
  TensorReport& report = add("comb_mix");
  compare_bound(got_.comb_mix, exact, bound, &report);
  if (got_.comb_mix.size() != exact.size()) return;
  comb_sums(exact, bound, &report);
  if (!options_.statistics) return;
  const ClassLimits& limits = class_limits(call_.problem.projection);
  judge_max(report.max_abs, limits.comb_max * scale_ * spread(logits, 2 * n, width), "largest error",
            &report);
}

void Judge::mixes(const Logits& logits, const Tensors& exact) {
  const auto n = static_cast<size_t>(call_.problem.streams);
  if (!got_.pre_mix.empty()) {
    compare_bound(got_.pre_mix, exact.pre_mix, sigmoid_bound(logits, 0, 1), &add("pre_mix"));
  }
  if (call_.problem.op == FMHC_HEAD) return;
  const auto factor = static_cast<double>(call_.problem.consts.post_mult);
  TensorReport& post = add("post_mix");
  compare_bound(got_.post_mix, exact.post_mix, sigmoid_bound(logits, n, factor), &post);
  if (options_.statistics) {
    const double limit = class_limits(call_.problem.projection).post_max * std::fabs(factor) / 2;
    judge_max(post.max_abs, limit * scale_ * spread(logits, n, 2 * n), "largest error", &post);
  }
  comb(logits, exact.comb_mix);
}

void Judge::coefficients() {
  Logits logits;
  report_.error = make_logits(call_, options_.arithmetic, options_.reference, &logits);
  if (!report_.error.empty()) return;
  Case plain = call_;
  plain.problem.norm = FMHC_NORM_NONE;
  plain.problem.norm_weight_dtype = 0;
  plain.in.norm_weight.clear();
  if (call_.problem.op == FMHC_PRE) {
    // The projection is there already.
    plain.problem.op = FMHC_FINISH;
    plain.problem.projection = FMHC_CLASS_F;
    plain.splits = 1;
    plain.in.dot_mix_in = logits.dot;
    plain.in.sqrsum_in = logits.sqrsum;
    plain.in.fn.clear();
  }
  RunResult exact;
  if (!run_reference_case(plain, &exact)) return;
  mixes(logits, exact.out);
  if (call_.problem.carried_pre != 0) return layer_input(call_.in.pre_in, {});
  if (got_.pre_mix.size() == exact.out.pre_mix.size()) return layer_input(got_.pre_mix, {});
  layer_input(exact.out.pre_mix, sigmoid_bound(logits, 0, 1));
}

// The two halves of a seam; the second sees the residual that the kernel stored.
std::pair<Case, Case> halves(const Case& seam, const Values& residual_out) {
  Case post = as_operator(seam, FMHC_POST), pre = seam;
  post.in.residual = seam.in.residual;
  post.in.sublayer_output = seam.in.sublayer_output;
  post.in.post_in = seam.in.post_in;
  post.in.comb_in = seam.in.comb_in;
  pre.problem.op = FMHC_PRE;
  pre.in.residual = residual_out;
  return {std::move(post), std::move(pre)};
}

}  // namespace

Report check_outputs(const Case& call, const Tensors& got, const Options& options) {
  if (call.problem.op != FMHC_SEAM) return Judge(call, got, options).run();
  const auto [post, pre] = halves(call, got.residual_out);
  Report report = Judge(post, got, options).run();
  if (!report.error.empty() || got.residual_out.size() != call.in.residual.size()) return report;
  Report second = Judge(pre, got, options).run();
  report.error = std::move(second.error);
  std::move(second.tensors.begin(), second.tensors.end(), std::back_inserter(report.tensors));
  return report;
}

Report check_args(const fmhc_problem& problem, const fmhc_args& args, const Options& options) {
  Case call;
  Tensors got;
  read_args(problem, args, &call, &got);
  return check_outputs(call, got, options);
}

}  // namespace fmhc::check
