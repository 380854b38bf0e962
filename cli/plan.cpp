// flashmhc plan: which kernel would run, for which token counts, split how, and with --explain why not
// another.
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/problem_options.h"

namespace fmhc::cli {
namespace {

struct Options {
  ProblemOptions problem;
  TargetOptions target;
  HintOptions hints;
  bool explain = false, json = false;
};

std::string microseconds(const Json& value) {
  if (!value.is_number()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value.get<double>());
  return text;
}

void print_ranges(const Json& plan) {
  std::vector<std::vector<std::string>> rows = {{"from", "to", "kernel", "split_k", "predicted us at `to`"}};
  for (const Json& range : plan["ranges"]) {
    rows.push_back({range["from"].dump(), range["to"].dump(), range["kernel"].get<std::string>(),
                    range["split_k"].dump(), microseconds(range["predicted_us"])});
  }
  print_table(rows);
}

void print_candidates(const Json& plan) {
  std::vector<std::vector<std::string>> rows = {{"candidate", "split_k", "predicted us", "refused because"}};
  for (const Json& row : plan["candidates"]) {
    const bool eligible = row["eligible"].get<bool>();
    rows.push_back({row["kernel"].get<std::string>(), eligible ? row["split_k"].dump() : "-",
                    eligible ? microseconds(row["predicted_us"]) : "-",
                    eligible ? "" : row["reason"].get<std::string>()});
  }
  std::cout << '\n';
  print_table(rows);
}

void print_text(const Json& plan, bool explain) {
  const Json& problem = plan["problem"];
  std::cout << problem["op"].get<std::string>() << ", " << problem["streams"] << " streams of "
            << problem["hidden"] << ", up to " << plan["tokens"] << " tokens, on "
            << plan["target"]["num_units"]
            << (plan["target"]["device_kind"] == "cpu" ? " CPU threads\n" : " multiprocessors\n");
  if (!plan["runnable"].get<bool>()) {
    std::cout << "cannot run here: " << plan["reason"].get<std::string>() << '\n';
  }
  std::cout << "split_k " << plan["split_k"] << "; scratch " << plan["scratch_bytes"] << ", state "
            << plan["state_bytes"] << ", packed " << plan["packed_bytes"] << " bytes\n\n";
  print_ranges(plan);
  if (explain) print_candidates(plan);
}

}  // namespace

Command add_plan(CLI::App& app, const Environment& environment) {
  auto options = std::make_shared<Options>();
  options->problem.add_to(app, environment);
  options->target.add_to(app);
  options->hints.add_to(app, environment);
  app.add_flag("--explain", options->explain, "Every kernel of the operator and why it was not chosen");
  add_json_flag(app, &options->json);
  app.footer(
      "Where nothing of this build can serve, the plan is made with kernels that are not built, and "
      "`runnable` is "
      "false. Exit code 1: the named kernel cannot serve.");
  return [options] {
    const Json plan =
        explain_plan(options->problem.problem(), options->target.target(), options->hints.hints());
    options->json ? print_json(plan) : print_text(plan, options->explain);
    const bool asked = !options->hints.kernel.empty() && options->hints.kernel != "auto";
    return plan["kernel"].is_null() && asked ? kExitNo : kExitOk;
  };
}

}  // namespace fmhc::cli
