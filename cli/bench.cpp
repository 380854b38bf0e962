// flashmhc bench: what every operator takes on this CPU, against the copy bandwidth and the FMA peak of the
// same run.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "cli/bench_case.h"
#include "cli/commands.h"
#include "cli/machine_rates.h"
#include "cli/problem_options.h"
#include "cli/progress.h"
#include "cli/thread_pool.h"

namespace fmhc::cli {
namespace {

struct Options {
  std::vector<std::string> ops;
  std::vector<int64_t> tokens, hidden;
  ProblemOptions problem;
  HintOptions hints;
  int threads = 0, samples = 0;
  bool quick = false, warm = false, json = false;
};

// What the lists are when they are not given.
const std::vector<std::string> kOps = {"expand", "project", "finish", "pre",
                                       "post",   "seam",    "head",   "contract"};
const std::vector<std::string> kQuickOps = {"pre", "post", "seam"};
const std::vector<int64_t> kTokens = {1, 16, 64, 256, 1024, 4096};
const std::vector<int64_t> kQuickTokens = {1, 64, 512};
const std::vector<int64_t> kHidden = {4096, 7168};
const std::vector<int64_t> kQuickHidden = {4096};

// A virtual machine may report the cache of a whole socket.
constexpr int64_t kMostRotateBytes = 1 << 30, kQuickRotateBytes = 256 << 20;

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        pool_(options.threads > 0 ? options.threads : hardware_threads()),
        rates_(measure_rates(*pool_.executor(), options.quick)),
        build_(Json::parse(fmhc_build_info())) {
    fmhc_diag diag{};
    require_ok(fmhc_target_named("cpu", &target_, &diag), diag);
    target_.num_units = pool_.threads();
  }

  Json machine() const {
    return {{"record", "machine"},
            {"schema", 1},
            {"cpu", cpu_name()},
            {"threads", pool_.threads()},
            {"copy_gbs", rounded(rates_.copy_bytes_per_us / 1e3)},
            {"fma_gflops", rounded(rates_.fma_flops_per_us / 1e3)},
            {"last_level_cache_bytes", last_level_cache_bytes()},
            {"version", build_["version"]},
            {"commit", build_["commit"]},
            {"compiler", build_["compiler"]}};
  }

  Json measure(const std::string& op, int64_t hidden, int64_t tokens) const {
    const fmhc_problem problem = problem_of(op, hidden, tokens);
    const int64_t most = options_.quick ? kQuickRotateBytes : kMostRotateBytes;
    const int64_t rotate = options_.warm ? 0 : std::min(2 * last_level_cache_bytes(), most);
    BenchCase bench(problem, target_, options_.hints.hints(), *pool_.executor(), rotate);
    const int samples = options_.samples > 0 ? options_.samples : options_.quick ? 7 : 21;
    const BenchTiming timing = bench.time(samples, options_.quick ? 1000 : 5000);
    const double memory_us = bench.bytes() / rates_.copy_bytes_per_us;
    const double floor_us = std::max(memory_us, bench.flops() / rates_.fma_flops_per_us);
    return {{"record", "time"},
            {"op", op},
            {"norm", name_of(norm_names(), problem.norm)},
            {"class", name_of(class_names(), problem.projection)},
            {"tokens", tokens},
            {"streams", problem.streams},
            {"hidden", hidden},
            {"dtype", options_.problem.dtype},
            {"caches", options_.warm ? "warm" : "cold"},
            {"copies", bench.copies()},
            {"us", rounded(timing.us)},
            {"spread", rounded(timing.spread)},
            {"samples", timing.samples},
            {"calls", timing.calls},
            {"bytes", bench.bytes()},
            {"flops", bench.flops()},
            {"gbs", rounded(bench.bytes() / timing.us / 1e3)},
            {"copy_share", rounded(memory_us / timing.us)},
            {"floor_us", rounded(floor_us)},
            {"ratio", rounded(timing.us / floor_us)},
            {"kernel", bench.kernel()},
            {"split_k", bench.split_k()},
            {"cpu", cpu_name()},
            {"threads", pool_.threads()},
            {"commit", build_["commit"]}};
  }

 private:
  // Four significant digits: more would be noise.
  static double rounded(double value) {
    if (!std::isfinite(value) || value == 0) return value;
    const double unit = std::pow(10.0, std::floor(std::log10(std::fabs(value))) - 3);
    return unit >= 1 ? std::round(value / unit) * unit : std::round(value * (1 / unit)) / (1 / unit);
  }

  // A norm and a class apply to the operators that have one.
  fmhc_problem problem_of(const std::string& op, int64_t hidden, int64_t tokens) const {
    ProblemOptions options = options_.problem;
    options.op = op;
    options.hidden = hidden;
    options.tokens = tokens;
    const int32_t id = value_of(op_names(), op, "--op");
    const bool projects = id == FMHC_PROJECT || id == FMHC_PRE || id == FMHC_SEAM || id == FMHC_HEAD;
    const bool collapses = id != FMHC_EXPAND && id != FMHC_PROJECT && id != FMHC_POST;
    if (!projects) options.projection = "F";
    if (!collapses) options.norm = "none";
    return options.problem();
  }

  const Options& options_;
  ThreadPool pool_;
  MachineRates rates_;
  Json build_;
  fmhc_target target_{};
};

std::string number(const Json& value, const char* format = "%.4g") {
  char text[32];
  std::snprintf(text, sizeof text, format, value.get<double>());
  return text;
}

void print_text(const Json& machine, const std::vector<Json>& records) {
  std::cout << machine["cpu"].get<std::string>() << ", " << machine["threads"] << " threads: copy "
            << machine["copy_gbs"] << " GB/s, FMA " << machine["fma_gflops"] << " Gflop/s\n\n";
  std::vector<std::vector<std::string>> rows = {
      {"op", "T", "H", "kernel", "us", "spread", "GB/s", "of copy", "floor us", "ratio"}};
  for (const Json& record : records) {
    rows.push_back({record["op"].get<std::string>(), record["tokens"].dump(), record["hidden"].dump(),
                    record["kernel"].get<std::string>(), number(record["us"]),
                    number(record["spread"], "%.2f"), number(record["gbs"]),
                    number(record["copy_share"], "%.2f"), number(record["floor_us"]),
                    number(record["ratio"], "%.2f")});
  }
  print_table(rows);
}

template <typename Value>
const std::vector<Value>& given_or(const std::vector<Value>& given, bool quick, const std::vector<Value>& few,
                                   const std::vector<Value>& all) {
  return !given.empty() ? given : quick ? few : all;
}

int run(const Options& options) {
  const auto& ops = given_or(options.ops, options.quick, kQuickOps, kOps);
  const auto& hidden = given_or(options.hidden, options.quick, kQuickHidden, kHidden);
  const auto& tokens = given_or(options.tokens, options.quick, kQuickTokens, kTokens);
  const Bench bench(options);
  if (options.json) print_json_line(bench.machine());
  std::vector<Json> records;
  {
    Progress progress("bench", static_cast<int64_t>(ops.size() * hidden.size() * tokens.size()));
    for (const std::string& op : ops) {
      for (const int64_t width : hidden) {
        for (const int64_t count : tokens) {
          records.push_back(bench.measure(op, width, count));
          if (options.json) print_json_line(records.back());
          progress.advance();
        }
      }
    }
  }
  if (!options.json) print_text(bench.machine(), records);
  return kExitOk;
}

}  // namespace

Command add_bench(CLI::App& app, const Environment& environment) {
  auto options = std::make_shared<Options>();
  app.add_option("--op", options->ops, "Operators; default: all, with --quick pre post seam")->delimiter(',');
  app.add_option("--tokens", options->tokens, "Token counts")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--hidden", options->hidden, "Hidden sizes")->delimiter(',')->check(CLI::PositiveNumber);
  options->problem.add_model_to(app, environment);
  options->hints.add_to(app, environment);
  app.add_option("--threads", options->threads, "Threads; default: all")->check(CLI::Range(1, 1024));
  app.add_option("--samples", options->samples, "Samples that the median is taken of")
      ->check(CLI::Range(1, 10000));
  app.add_flag("--quick", options->quick, "A few shapes, shorter");
  app.add_flag("--warm", options->warm, "One copy of the tensors, left in the caches; else they rotate");
  app.add_flag("--json", options->json, "One JSON object a line: the machine, then each shape");
  app.footer(
      "Nothing is asserted about speed. bytes: every tensor once; floor_us: the larger of bytes / copy "
      "bandwidth "
      "and flops / FMA peak, both measured in this run; ratio: us / floor_us.");
  return [options] { return run(*options); };
}

}  // namespace fmhc::cli
