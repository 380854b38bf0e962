// bench and sweep: microseconds, bytes and the ratio to the floor, as JSON lines and a short table.
#include <algorithm>
#include <cmath>
#include <set>

#include "bench_cell.h"
#include "commands.h"

namespace fmhc_gpu {
namespace {

constexpr const char* kDefaultOps = "pre,pre+norm,seam+norm,post,head,finish,project";
constexpr const char* kDefaultTokens = "1,4,16,64,256,1024,4096,8192,16384";
constexpr double kDefaultSeconds = 150;
constexpr int64_t kWarmTokens = 1024;   // above, the streams do not stay in the L2
constexpr int64_t kRatioTokens = 4096;  // from here on the table shows ratios

std::string number(double value, int digits = 4) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

struct Session {
  explicit Session(const Options& options_in, const char* default_file)
      : options(options_in), device(options_in.device), pools(device), file(default_file) {
    card = device.card();
    clock_mhz = measure_clock_mhz(device);
    copy_tbps = measure_copy_tbps(device);
    const std::vector<int64_t> replays = options.numbers("replays", "11");
    bench.replays = static_cast<int>(std::max<int64_t>(replays.at(0), 1));
    bench.foreign_us = foreign_alone_us(device, pools, bench.replays);
    bench.empty_us = empty_graph_us(device, bench.replays);
  }

  Measured measure(const Cell& cell) {
    const Measured result = bench.measure(cell, options.kernel);
    if (result.absent) {
      absent.insert(cell.op + " " + class_name(cell.problem.projection) + ": " + result.error);
      return result;
    }
    if (!result.error.empty()) {
      ++failures;
      const bool shown = ++reasons[result.error] <= 2;  // the same again and again would bury the table
      if (shown)
        std::printf("  FAIL %s T=%lld H=%lld %s: %s\n", cell.op.c_str(), static_cast<long long>(cell.tokens),
                    static_cast<long long>(cell.problem.hidden), result.kernel.c_str(), result.error.c_str());
    }
    if (!result.timing.ok) return result;
    ++measured;
    append_line(options, file, json(cell, result));
    return result;
  }

  std::string json(const Cell& cell, const Measured& result) const {
    const fmhc_problem& p = cell.problem;
    std::string line = "{\"op\": " + json_text(op_name(p.op)) +
                       ", \"norm\": " + json_text(norm_name(p.norm)) +
                       ", \"class\": " + json_text(class_name(p.projection)) +
                       ", \"mode\": " + json_text(mode_name(cell.mode)) +
                       ", \"residual\": " + json_text(cell.warm ? "warm" : "cold") +
                       ", \"dtype\": " + json_text(dtype_name(p.residual_dtype)) +
                       ", \"kernel\": " + json_text(result.kernel);
    const auto add = [&](const char* key, double value, int digits) {
      line += std::string(", \"") + key + "\": " + number(value, digits);
    };
    add("pdl", p.pdl, 2);
    add("coresident_units", p.coresident_units, 6);
    add("carried_pre", p.carried_pre, 2);
    add("batch_invariant", p.batch_invariant, 2);
    add("tokens", static_cast<double>(cell.tokens), 12);
    add("hidden", static_cast<double>(p.hidden), 12);
    add("us", result.us, 5);
    add("us_min", result.timing.least_us, 5);
    add("us_max", result.timing.most_us, 5);
    add("bytes", result.bytes, 12);
    add("floor_us", result.floor_us, 5);
    add("ratio", result.us / result.floor_us, 5);
    add("split_k", result.splits, 6);
    add("calls", result.calls, 6);
    add("replays", bench.replays, 6);
    add("floor_tbps", kFloorTbps, 3);
    add("copy_tbps", copy_tbps, 4);
    add("foreign_us", bench.foreign_us, 4);
    add("clock_mhz", std::round(clock_mhz), 5);
    return line + ", \"card\": " + json_text(card.name) + ", \"driver\": " + json_text(card.driver) +
           ", \"clocks\": " + json_text(card.clocks) + ", \"commit\": " + json_text(FMHC_TEST_COMMIT) +
           ", \"ok\": " + (result.error.empty() ? "true" : "false") + "}";
  }

  void print_head() const {
    std::printf(
        "# %s, driver %s, %s, %.0f MHz now, copy %.2f TB/s, floor divisor %.1f TB/s, foreign kernel %.2f "
        "us\n",
        card.name.c_str(), card.driver.c_str(), card.clocks.c_str(), clock_mhz, copy_tbps, kFloorTbps,
        bench.foreign_us);
  }

  Result finish(const char* what) const {
    for (const std::string& text : absent) std::printf("  absent: %s\n", text.c_str());
    std::printf("%s: %d measured, %d failed, %zu absent, %d not run, %.1f s\n", what, measured, failures,
                absent.size(), skipped, clock.seconds());
    return failures > 0 || skipped > 0 ? kFailed : measured > 0 ? kPassed : kNotRun;
  }

  bool out_of_time() {
    const bool late = clock.seconds() > options.seconds;
    if (late) ++skipped;
    return late;
  }

  const Options& options;
  Device device;
  Pools pools;
  std::string file;
  CardInfo card;
  Bench bench{device, pools, 11, 0, 0};
  double clock_mhz = 0, copy_tbps = 0;
  Clock clock;
  std::set<std::string> absent;
  std::map<std::string, int> reasons;
  int measured = 0, failures = 0, skipped = 0;
};

struct Line {  // of the table: a mode, its PDL switch, the residual
  Mode mode;
  int32_t pdl;
  bool warm;
};

std::vector<Line> wanted_lines(const Options& options) {
  std::vector<Line> lines;
  const bool chosen =
      options.values.count("mode") + options.values.count("pdl") + options.values.count("residual") > 0;
  if (!chosen) {
    return {{Mode::kChained, 0, false},
            {Mode::kChained, 1, false},
            {Mode::kChained, 1, true},
            {Mode::kForeign, 0, true}};
  }
  for (const std::string& mode : options.list("mode", "chained")) {
    for (const int64_t pdl : options.numbers("pdl", "0,1")) {
      for (const std::string& residual : options.list("residual", "cold")) {
        lines.push_back({mode == "foreign" ? Mode::kForeign
                         : mode == "alone" ? Mode::kAlone
                                           : Mode::kChained,
                         static_cast<int32_t>(pdl), residual == "warm"});
      }
    }
  }
  return lines;
}

fmhc_problem problem_for(const Options& options, const std::string& op, const std::string& projection,
                         int64_t hidden, int64_t tokens) {
  fmhc_problem problem = make_problem(FMHC_PRE, hidden, tokens);
  if (!parse_op(op, &problem)) die("unknown operator", op.c_str());
  problem.projection = projects(problem.op) && projection == "F2"  ? FMHC_CLASS_F2
                       : projects(problem.op) && projection == "R" ? FMHC_CLASS_R
                                                                   : FMHC_CLASS_F;
  problem.coresident_units = static_cast<int32_t>(options.numbers("units", "0").at(0));
  problem.batch_invariant = static_cast<int32_t>(options.numbers("invariant", "0").at(0));
  while (problem.align_bytes > 0 && hidden * 2 % problem.align_bytes != 0) problem.align_bytes /= 2;
  const std::string dtype = options.list("dtype", "bf16").at(0);
  problem.residual_dtype = dtype == "fp16" ? FMHC_FP16 : dtype == "fp32" ? FMHC_FP32 : FMHC_BF16;
  return problem;
}

// One operator, class and hidden size: its lines of the table.
void bench_block(Session* session, const std::string& op, const std::string& projection, int64_t hidden) {
  const Options& options = session->options;
  const std::vector<int64_t> tokens = options.numbers("tokens", kDefaultTokens);
  const bool chosen = options.values.count("residual") > 0;
  for (const Line& line : wanted_lines(options)) {
    char label[80];
    std::snprintf(label, sizeof label, "%-9s %-2s %4lld %s%s %s", op.c_str(), projection.c_str(),
                  static_cast<long long>(hidden), mode_name(line.mode), line.pdl != 0 ? "+pdl" : "    ",
                  line.warm ? "warm" : "cold");
    std::string row;
    bool any = false;
    for (const int64_t count : tokens) {
      Cell cell;
      cell.op = op;
      cell.mode = line.mode;
      cell.warm = line.warm;
      cell.tokens = count;
      cell.problem = problem_for(options, op, projection, hidden, count);
      cell.problem.pdl = line.pdl;
      const bool useful = !line.warm || chosen || count <= kWarmTokens;
      std::string text(1, '-');
      if (useful && !session->out_of_time()) {
        const Measured result = session->measure(cell);
        any = any || result.timing.ok;
        if (result.timing.ok) {
          text = number(count >= kRatioTokens ? result.us / result.floor_us : result.us, 3);
          if (count >= kRatioTokens) text.push_back('x');
        }
        if (!result.error.empty()) text.push_back('!');
      }
      row.append(text.size() < 7 ? 7 - text.size() : 1, ' ').append(text);
    }
    if (any) std::printf("%-32s%s\n", label, row.c_str());
  }
}

Result bench_part(const Options& options, const std::string& op) {
  Session session(options, "bench.jsonl");
  fmhc_problem probe{};
  if (!parse_op(op, &probe)) die("unknown operator", op.c_str());
  std::vector<std::string> classes = options.list("class", "F2,F");
  if (!projects(probe.op)) classes = {"F"};  // whatever was asked: there is nothing to project
  for (const std::string& projection : classes) {
    for (const int64_t hidden : options.numbers("hidden", "4096,7168"))
      bench_block(&session, op, projection, hidden);
  }
  return session.finish(op.c_str());
}

// Times at T and T + 1 over powers of two and the bounds of the plan's ranges.
Result sweep_part(const Options& options, const std::string& op) {
  Session session(options, "sweep.jsonl");
  const int64_t most = options.numbers("tokens", "16384").at(0);
  constexpr double kCliff = 1.3;
  int cliffs = 0;
  for (const int64_t hidden : options.numbers("hidden", "4096,7168")) {
    Cell cell;
    cell.op = op;
    cell.problem = problem_for(options, op, options.list("class", "F2").at(0), hidden, most + 1);
    cell.problem.pdl = static_cast<int32_t>(options.numbers("pdl", "1").at(0));
    std::set<int64_t> edges;
    for (int64_t t = 1; t <= most; t *= 2) edges.insert(t);
    for (const int64_t t : {24, 48, 80, 96, 192, 384, 768, 1536}) edges.insert(std::min(t, most));
    for (const int64_t t : plan_edges(session.device, cell.problem, options.kernel)) edges.insert(t);
    double worst = 0;
    int64_t worst_at = 0;
    for (const int64_t t : edges) {
      double us[2] = {0, 0};
      for (int64_t step = 0; step < 2 && !session.out_of_time(); ++step) {
        cell.tokens = t + step;
        const Measured result = session.measure(cell);
        us[step] = result.timing.ok ? result.us : 0;
      }
      if (us[0] <= 0 || us[1] <= 0) continue;
      const double jump = us[1] / us[0];
      if (jump > kCliff) {
        ++cliffs;
        std::printf("  CLIFF %s H=%lld T=%lld: %.2f us, T+1: %.2f us (%.2fx)\n", op.c_str(),
                    static_cast<long long>(hidden), static_cast<long long>(t), us[0], us[1], jump);
      }
      if (jump > worst) {
        worst = jump;
        worst_at = t;
      }
    }
    std::printf("%-10s H=%lld: %zu edges, worst T+1 over T %.3f at T=%lld\n", op.c_str(),
                static_cast<long long>(hidden), edges.size(), worst, static_cast<long long>(worst_at));
  }
  return merge(session.finish(op.c_str()), cliffs == 0 ? kPassed : kFailed);
}

Result run_by_op(const Options& options, const char* name, const char* default_ops, double default_seconds,
                 Result (*run)(const Options&, const std::string&)) {
  const auto part = options.values.find("part");
  const double seconds = options.seconds > 0 ? options.seconds : default_seconds;
  if (part != options.values.end()) {
    Options own = options;
    own.seconds = seconds;
    arm_timeout(seconds + 4);
    return run(own, part->second);
  }
  const std::vector<std::string> ops = options.list("op", default_ops);
  std::vector<Part> parts;
  for (const std::string& op : ops) parts.push_back({op.c_str(), seconds, nullptr});
  if (std::string(name) == "bench") {
    Session(options, "").print_head();
    std::string head;
    for (const int64_t t : options.numbers("tokens", kDefaultTokens)) {
      char text[20];
      std::snprintf(text, sizeof text, " %6lld", static_cast<long long>(t));
      head += text;
    }
    std::printf("%-32s%s   us; from %lld tokens on: ratio to the floor\n", "op class H mode residual",
                head.c_str(), static_cast<long long>(kRatioTokens));
  }
  return run_parts(options, name, parts, seconds);
}

}  // namespace

Result run_bench(const Options& options) {
  return run_by_op(options, "bench", kDefaultOps, kDefaultSeconds, bench_part);
}

Result run_sweep(const Options& options) {
  return run_by_op(options, "sweep", "pre,seam+norm,post", 120, sweep_part);
}

}  // namespace fmhc_gpu
