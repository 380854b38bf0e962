#include "cli/verify_replay.h"

#include <algorithm>
#include <cstring>

#include "check/compare.h"

namespace fmhc::cli {
namespace {

// Repeated tokens have the same roundings: the statistics assume that they are independent.
bool has_repeats(const Values& rows, size_t width) {
  if (width == 0) return false;
  std::set<std::string_view> seen;
  for (size_t i = 0; i + width <= rows.size(); i += width) {
    if (!seen.emplace(reinterpret_cast<const char*>(&rows[i]), width * sizeof(double)).second) return true;
  }
  return false;
}

// The user's bound of a tensor, on top of what the oracle demands.
void add_user_limit(const Limits& limits, check::TensorReport* report) {
  const auto user = limits.user(report->tensor);
  if (!user) return;
  const double measured = user->measure == Measure::kMaxAbs ? report->max_abs : report->relative_norm;
  report->outcomes.push_back({"given bound", measured, user->limit, measured <= user->limit});
}

}  // namespace

const char* against_name(Against against) {
  constexpr const char* kNames[] = {"ref", "recorded", "composed", "chain"};
  return kNames[static_cast<int>(against)];
}

check::RunResult run_backend(const VerifyConfig& config, const Case& call) {
  const check::RunOptions options{config.kernel.empty() ? nullptr : config.kernel.c_str(), config.executor};
  check::RunResult result = check::run_case(call, options);
  if (result.code != FMHC_OK) {
    fmhc_diag diag{};
    std::strncpy(diag.text, result.text.c_str(), sizeof diag.text - 1);
    require_ok(result.code, diag);
  }
  return result;
}

Tensors Replay::call(const Case& call) {
  check::RunResult result = run_backend(config_, call);
  kernel_ = result.kernel;
  if (!kernel_.empty()) kernels_.insert(kernel_);
  return std::move(result.out);
}

void Replay::judge(const Recorded& at, const Case& call, const Tensors& got) {
  if (!config_.oracle) return;
  check::Options options;
  const int64_t streams = call.problem.streams;
  options.arithmetic = check::arithmetic_of(kernel_, streams * call.problem.hidden);
  options.statistics = !has_repeats(call.in.residual, static_cast<size_t>(streams * call.problem.hidden));
  check::Report report = check::check_outputs(call, got, options);
  if (!report.error.empty()) throw Failure(kExitBug, "the oracle did not run: " + report.error);
  for (check::TensorReport& tensor : report.tensors) {
    if (call.problem.norm != FMHC_NORM_NONE) {
      if (tensor.tensor != "layer_input") continue;
      tensor.tensor = "normed_input";
    } else if (at.site == std::string_view("exit") && tensor.tensor == "layer_input") {
      tensor.tensor = "output";
    }
    add_user_limit(config_.limits, &tensor);
    records_.push_back({at.layer, at.site, Against::kOracle, std::move(tensor), {}});
  }
}

void Replay::compare(const Recorded& at, const char* tensor, const Case& call, const Values& got,
                     const Values& recorded) {
  if (!config_.recorded) return;
  Record record{at.layer, at.site, Against::kRecorded, {}, {}};
  const bool row = got.size() == static_cast<size_t>(call.tokens * call.problem.hidden);
  record.report = check::start_report(row ? "layer_input" : tensor, call);
  record.report.tensor = tensor;
  record.limits = config_.limits.recorded(trace_, tensor, kernel_);
  compare_recorded(record.limits, got, recorded, call, &record.report);
  records_.push_back(std::move(record));
}

void Replay::equal(const Recorded& at, Against against, const char* tensor, const Case& call,
                   const Values& got, const Values& wanted) {
  Record record{at.layer, at.site, against, check::start_report(tensor, call), {}};
  check::compare_equal(got, wanted, &record.report);
  records_.push_back(std::move(record));
}

void Replay::entry(const Values& first_residual) {
  Recorded at;
  at.site = "entry";
  const Case expand = trace_.expand(trace_.load_embedding());
  const Tensors got = call(expand);
  judge(at, expand, got);
  if (config_.recorded)
    equal(at, Against::kRecorded, "residual_out", expand, got.residual_out, first_residual);
}

void Replay::site(const Recorded& site, const Values& mix, const Recorded* next) {
  const Case pre = trace_.pre(site, site.residual, mix);
  const Tensors got = call(pre);
  judge(site, pre, got);
  if (trace_.carried()) compare(site, "pre_mix", pre, got.pre_mix, site.pre_mix);
  compare(site, "post_mix", pre, got.post_mix, site.post_mix);
  compare(site, "comb_mix", pre, got.comb_mix, site.comb_mix);
  compare(site, "layer_input", pre, got.layer_input, site.layer_input);
  if (trace_.carried()) normed(site, mix);
  const Case post = trace_.post(site.residual, site.sublayer_output, got.post_mix, got.comb_mix);
  const Tensors posted = call(post);
  judge(site, post, posted);
  compare(site, "residual_out", post, posted.residual_out, site.residual_out);
  if (next != nullptr) seam(post, posted, *next, site.pre_mix);
}

void Replay::normed(const Recorded& site, const Values& mix) {
  const Case pre = trace_.pre(site, site.residual, mix, true);
  const Tensors got = call(pre);
  judge(site, pre, got);
  compare(site, "normed_input", pre, got.layer_input, site.normed_input);
}

// The seam behind a site must give the bits of post and of the next pre.
void Replay::seam(const Case& post, const Tensors& posted, const Recorded& next, const Values& mix) {
  const Case fused = trace_.seam(post, next, mix);
  const Tensors got = call(fused);
  const Tensors wanted = call(trace_.pre(next, posted.residual_out, mix));
  equal(next, Against::kComposed, "residual_out", fused, got.residual_out, posted.residual_out);
  equal(next, Against::kComposed, "pre_mix", fused, got.pre_mix, wanted.pre_mix);
  equal(next, Against::kComposed, "post_mix", fused, got.post_mix, wanted.post_mix);
  equal(next, Against::kComposed, "comb_mix", fused, got.comb_mix, wanted.comb_mix);
  equal(next, Against::kComposed, "layer_input", fused, got.layer_input, wanted.layer_input);
}

void Replay::exit(const Values& last_residual, const Values& mix) {
  const Recorded at = trace_.load_exit();
  const Case exit = trace_.exit(at, at.residual, mix);
  const Tensors got = call(exit);
  judge(at, exit, got);
  compare(at, "output", exit, got.layer_input, at.layer_input);
  if (config_.recorded) equal(at, Against::kChain, "residual", exit, at.residual, last_residual);
  step_();
}

void Replay::run() {
  Values mix = trace_.first_mix();
  Values before;
  Recorded current = trace_.load_site(0);
  entry(current.residual);
  for (int64_t index = 0; index < trace_.sites(); ++index) {
    const bool last = index + 1 == trace_.sites();
    Recorded next;
    if (!last) next = trace_.load_site(index + 1);
    if (config_.recorded && index > 0) {
      equal(current, Against::kChain, "residual", trace_.pre(current, {}, {}), current.residual, before);
    }
    site(current, mix, last ? nullptr : &next);
    mix = std::move(current.pre_mix);
    before = std::move(current.residual_out);
    current = std::move(next);
    step_();
  }
  exit(before, mix);
}

}  // namespace fmhc::cli
