// The comparison of one call with the oracle.
#include <algorithm>
#include <cstdio>

#include "check/limits.h"
#include "fill.cuh"
#include "oracle_checks.h"

namespace fmhc_gpu {
namespace check = fmhc::check;
namespace {

constexpr int kMaxChecks = 16;
constexpr int64_t kMaxCheckedRows = 4096;  // of larger cases the first and last 16

struct Pass {
  Judge& judge;
  const Prepared& call;
  Oracle oracle;
  Outcome outcome;

  template <class F>
  void check(const char* name, int64_t count, F functor) {
    Tally* slot = judge.tallies + outcome.checks.size() % kMaxChecks;
    judge.device.copy_in(slot, &kZero, sizeof kZero);
    tally(judge.device, count, functor, slot);
    Check result{name, {}, {}};
    judge.device.copy_out(&result.tally, slot, sizeof result.tally);
    if (result.tally.misses > 0) {
      result.first = detail_at(judge.device, functor, result.tally.first_miss);
      char text[400];
      const Detail& d = result.first;
      std::snprintf(
          text, sizeof text,
          "%s[%lld,%lld,%lld]: got %.9g, want %.9g in [%.9g, %.9g]; %llu of %llu off, worst ratio %.3g", name,
          static_cast<long long>(d.place[0]), static_cast<long long>(d.place[1]),
          static_cast<long long>(d.place[2]), d.got, d.want, d.low, d.high, result.tally.misses,
          result.tally.checks, result.tally.worst);
      outcome.failures.emplace_back(text);
    } else if (result.tally.checks != static_cast<unsigned long long>(std::max<int64_t>(count, 0))) {
      outcome.failures.emplace_back(std::string(name) + ": fewer checks than elements ran");
    }
    outcome.checks.push_back(result);
  }

  void complain(const char* format, double value, double limit) {
    char text[200];
    std::snprintf(text, sizeof text, format, value, limit);
    outcome.failures.emplace_back(outcome.checks.back().name + ": " + text);
  }

  // Rounding that leans to one side passes every elementwise bound and compounds over layers.
  void check_rounding() {
    const Tally& last = outcome.checks.back().tally;
    const double n = static_cast<double>(last.above + last.below);
    if (call.spec.family == Family::kInteger || call.spec.family == Family::kTiny || n < 200) return;
    const double lean = (static_cast<double>(last.above) - static_cast<double>(last.below)) / sqrt(n);
    // A common error of the coefficients leans all elements of a token, a little.
    const double limit = check::kSignDeviations + 0.02 * sqrt(n);
    if (fabs(lean) > limit) complain("signs of the rounding error lean, score %.1f, limit %.1f", lean, limit);
  }

  // post alone, from exact inputs: few elements may differ from the correctly rounded ones, and in fp32 the
  // error is no larger than a plain chain's.
  void check_update(int64_t count) {
    const Check updated = outcome.checks.back();
    if (updated.tally.misses > 0 || updated.tally.checks < 100000) return;
    const int32_t dtype = call.spec.problem.residual_dtype;
    const bool cancels = call.spec.family == Family::kCancel;
    const double misrounded =
        static_cast<double>(updated.tally.misrounded) / static_cast<double>(updated.tally.checks);
    if (dtype != FMHC_FP32 && !cancels && misrounded > check::misrounded_share(dtype)) {
      complain("%.2e of the elements are misrounded, limit %.1e", misrounded, check::misrounded_share(dtype));
    }
    if (dtype != FMHC_FP32) return;
    measure(count, PlainUpdate{oracle});
    const double ratio = sqrt(updated.tally.error_sum / fmax(scrap.error_sum, 1e-300));
    if (ratio > check::kPlainRmsRatio)
      complain("error %.3f times a plain fp32 chain's, limit %.2f", ratio, check::kPlainRmsRatio);
  }

  // A tally that is no check.
  template <class F>
  void measure(int64_t count, F functor) {
    judge.device.copy_in(judge.tallies, &kZero, sizeof kZero);
    tally(judge.device, count, functor, judge.tallies);
    judge.device.copy_out(&scrap, judge.tallies, sizeof scrap);
  }

  // Relative norm of the whole tensor: what a class promises on random data.
  void check_norm(double limit) {
    const Check& last = outcome.checks.back();
    if (last.tally.checks < 192 || call.spec.family == Family::kInteger) return;
    const double norm = sqrt(last.tally.error_sum / fmax(last.tally.value_sum, 1e-300));
    if (norm > limit) complain("relative norm of the error %.2e, limit %.1e", norm, limit);
  }

  Tally scrap;
  static constexpr Tally kZero{};
};

size_t align_up(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

}  // namespace

double Outcome::worst() const {
  double most = 0;
  for (const Check& check : checks) most = std::max(most, check.tally.worst);
  return most;
}

Bounds bounds_for(const CaseSpec& spec, bool strict) {
  Bounds bounds = strict ? Bounds::strict() : Bounds{};
  if (!strict) bounds.kappa = check::class_limits(spec.problem.projection).logit_max;
  if (spec.problem.op == FMHC_PROJECT && spec.family == Family::kInteger) bounds.exact_projection();
  bounds.comb_gain = check::sinkhorn_gain(spec.problem.streams, spec.problem.consts.sinkhorn_iters);
  return bounds;
}

Outcome Judge::compare(const Prepared& call, const Bounds& bounds) {
  const fmhc_problem& problem = call.spec.problem;
  const int64_t tokens = call.spec.tokens;
  Pass pass{*this, call, {}, {}, {}};
  if (tokens == 0) return pass.outcome;
  Oracle& o = pass.oracle;
  o.problem = problem;
  o.bounds = bounds;
  const bool all = tokens <= kMaxCheckedRows;
  o.rows = {tokens, all ? tokens : 32, all ? tokens : 16};
  o.splits = call.splits;
  o.chunks = static_cast<int>(std::clamp<int64_t>(flat_of(problem) / 64, 1, 32));
  for (int index = 0; index < kSlots; ++index) o.view[index] = call.view[index];
  o.streams = problem.op == FMHC_SEAM ? call.view[kResidualOut] : call.view[kResidual];
  o.before = call.before.data != nullptr ? call.before : call.view[kResidual];
  const int64_t rows = o.rows.count;
  const int64_t outputs = logits_of(problem) + 1;
  const size_t partial_bytes = align_up(static_cast<size_t>(rows * outputs * o.chunks) * sizeof(Partial));
  const size_t mix_bytes = align_up(static_cast<size_t>(rows) * sizeof(Coefficients));
  const size_t norm_bytes = static_cast<size_t>(rows * o.chunks) * sizeof(Range);
  if (partial_bytes + mix_bytes + norm_bytes > work_bytes)
    die("Judge::compare", "the workspace is too small");
  o.partial = reinterpret_cast<Partial*>(work);
  o.coefficients = reinterpret_cast<Coefficients*>(work + partial_bytes);
  o.squares = reinterpret_cast<Range*>(work + partial_bytes + mix_bytes);

  const int64_t wide = rows * problem.streams * problem.hidden;
  if (problem.op == FMHC_EXPAND) pass.check("residual_out", wide, CheckExpand{o});
  if (problem.op == FMHC_POST || problem.op == FMHC_SEAM) {
    pass.check("residual_out", wide, CheckUpdate{o});
    pass.check_rounding();
    pass.check_update(wide);
  }
  if (projects(problem.op)) for_each(device, rows * outputs * o.chunks, ProjectChunk{o});
  if (problem.op == FMHC_PROJECT) {
    pass.check("dot_mix", rows * logits_of(problem), CheckProject{o, false});
    pass.check_norm(check::class_limits(problem.projection).dot_norm);
    pass.check("sqrsum", rows, CheckProject{o, true});
  }
  const bool mixes = projects(problem.op) || problem.op == FMHC_FINISH;
  if (mixes && problem.op != FMHC_PROJECT) {
    for_each(device, rows, CoefficientsOfRow{o});
    if (call.view[kPreMix].data != nullptr) {
      pass.check("pre_mix", rows * problem.streams, CheckMix{o, kPreMix});
    }
    if (problem.op != FMHC_HEAD) {
      pass.check("post_mix", rows * problem.streams, CheckMix{o, kPostMix});
      pass.check("comb_mix", rows * problem.streams * problem.streams, CheckMix{o, kCombMix});
      pass.check("comb_columns", rows * problem.streams, CheckColumns{o});
    }
  }
  if (collapses(problem.op)) {
    if (problem.norm != FMHC_NORM_NONE) for_each(device, rows * o.chunks, NormChunk{o});
    pass.check("layer_input", rows * problem.hidden, CheckInput{o});
    pass.check_rounding();
  }
  for (int index = kResidualOut; !all && index < kSlots; ++index) {
    if (call.view[index].data == nullptr) continue;
    pass.check("finite", call.view[index].count(), CheckFinite{call.view[index]});
  }
  return pass.outcome;
}

Outcome Judge::compare_and_guard(Arena& arena, const Prepared& call, const Bounds& bounds) {
  Outcome outcome = compare(call, bounds);
  poison_outputs(device, call);
  device.fill_bytes(call.args.state, 0xff, call.args.state_bytes);
  device.fill_bytes(call.packed, 0xff, call.packed_bytes);
  if (arena.checksum() != call.clean) {
    outcome.failures.emplace_back("memory outside the outputs, scratch and state changed");
  }
  return outcome;
}

}  // namespace fmhc_gpu
