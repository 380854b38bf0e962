// The free run: the backend, plain fp32 and the oracle side by side, each on its own residual.
#include <algorithm>
#include <cmath>

#include "check/plain.h"
#include "check/statistics.h"
#include "cli/verify_replay.h"

namespace fmhc::cli {
namespace {

// Drift saturates where storage is coarse and cannot rank backends; it tells a compounding error.
constexpr double kDriftRatio = 1.3;
constexpr double kDriftFloor = 0x1p-24;  // a site: below an fp32 roundoff each, a ratio says nothing
constexpr double kLogGrowth = 2e-3;

// A trunk in motion.
class Trunk {
 public:
  Trunk(const TraceCalls& trace, check::Reference run) : trace_(trace), run_(std::move(run)) {
    residual_ = take(trace_.expand(trace_.load_embedding())).residual_out;
    mix_ = trace_.first_mix();
  }

  void pass(const Recorded& site) {
    Tensors made = take(trace_.pre(site, residual_, mix_));
    const Case post = trace_.post(std::move(residual_), site.sublayer_output, std::move(made.post_mix),
                                  std::move(made.comb_mix));
    residual_ = take(post).residual_out;
    if (trace_.carried()) mix_ = std::move(made.pre_mix);
  }

  Values leave(const Recorded& exit) { return take(trace_.exit(exit, residual_, mix_)).layer_input; }
  const Values& residual() const { return residual_; }

 private:
  Tensors take(const Case& call) {
    check::RunResult result = run_(call);
    if (result.code != FMHC_OK) throw Failure(kExitBug, "the free run stopped: " + result.text);
    return std::move(result.out);
  }

  const TraceCalls& trace_;
  check::Reference run_;
  Values residual_, mix_;
};

double distance(const Values& got, const Values& wanted) {
  Values difference(got.size());
  for (size_t i = 0; i < got.size(); ++i) difference[i] = got[i] - wanted[i];
  const double size = check::root_mean_square(wanted);
  const double error = check::root_mean_square(difference);
  return error == 0 ? 0 : error / size;
}

bool has_special(const Values& values) {
  for (const double value : values) {
    if (!std::isfinite(value)) return true;
  }
  return false;
}

DriftRow measure(int64_t layer, const Values& got, const Values& plain, const Values& exact,
                 const Values& recorded) {
  DriftRow row;
  row.layer = layer;
  row.drift = distance(got, exact);
  row.plain = distance(plain, exact);
  row.recorded = distance(got, recorded);
  const double ours = check::root_mean_square(got), oracle = check::root_mean_square(exact);
  row.log_growth = ours == oracle ? 0 : std::log(ours / oracle);
  return row;
}

}  // namespace

FreeRun run_free(const TraceCalls& trace, const check::Reference& run, const std::function<void()>& step) {
  Trunk backend(trace, run);
  Trunk plain(trace, check::run_plain);
  Trunk oracle(trace, check::run_reference);
  FreeRun free;
  int64_t specials = 0;
  const auto elements = static_cast<double>(oracle.residual().size());
  for (int64_t index = 0; index < trace.sites(); ++index) {
    const Recorded site = trace.load_site(index);
    for (Trunk* trunk : {&backend, &plain, &oracle}) trunk->pass(site);
    if (has_special(backend.residual()) && !has_special(oracle.residual())) ++specials;
    step();
    if (index % 2 == 0) continue;
    free.rows.push_back(
        measure(site.layer, backend.residual(), plain.residual(), oracle.residual(), site.residual_out));
  }
  const DriftRow last = free.rows.back();
  const Recorded exit = trace.load_exit();
  free.rows.push_back(
      measure(exit.layer, backend.leave(exit), plain.leave(exit), oracle.leave(exit), exit.layer_input));
  step();
  free.alarm.tensor = "residual";
  check::judge_max(static_cast<double>(specials), 0, "nan and infinity", &free.alarm);
  const double least = kDriftFloor * static_cast<double>(trace.sites());
  check::judge_max(last.drift, std::max(kDriftRatio * last.plain, least), "drift", &free.alarm);
  // Independent errors change the root mean square by their share over the root of the element count.
  const double noise = elements > 0 ? 6 * last.drift / std::sqrt(elements) : 0;
  check::judge_max(std::fabs(last.log_growth), kLogGrowth + noise, "growth", &free.alarm);
  return free;
}

}  // namespace fmhc::cli
