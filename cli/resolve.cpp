// flashmhc resolve: which library would serve a problem, given what is installed and which switches are set.
#include <iostream>
#include <list>
#include <memory>

#include "cli/commands.h"
#include "cli/problem_options.h"

namespace fmhc::cli {
namespace {

constexpr Named kOrders[] = {{"auto", FMHC_ORDER_AUTO}, {"sglang", FMHC_ORDER_SGLANG}};
constexpr Named kStates[] = {{"available", FMHC_AVAILABLE},
                             {"absent", FMHC_ABSENT},
                             {"broken", FMHC_BROKEN},
                             {"untested", FMHC_UNTESTED}};
constexpr const char* kOurs[] = {"cuda", "cpu", "ref"};
constexpr const char* kOthers[] = {"flashinfer", "tilelang", "aiter", "torch", "liger", "transformer_engine"};

struct Options {
  ProblemOptions problem;
  TargetOptions target;
  std::string order = "auto", backend;
  std::vector<std::string> with;
  bool strict = false, allow_untested = false, flashinfer = false, tilelang = false, aiter = false,
       amd = false;
  bool json = false;
};

// NAME, NAME=STATE or NAME=STATE:VERSION.
struct Given {
  std::string name, version;
  int32_t state = FMHC_AVAILABLE;
};

Given parse_given(const std::string& text) {
  Given given;
  const size_t equals = text.find('=');
  given.name = text.substr(0, equals);
  if (equals == std::string::npos) return given;
  const std::string rest = text.substr(equals + 1);
  const size_t colon = rest.find(':');
  given.state = value_of(kStates, rest.substr(0, colon), "--with");
  if (colon != std::string::npos) given.version = rest.substr(colon + 1);
  return given;
}

// Ours are there, all others absent, unless --with says otherwise. Points into `given`.
std::vector<fmhc_candidate> candidates_of(const std::list<Given>& given) {
  std::vector<fmhc_candidate> candidates;
  for (const char* name : kOurs)
    candidates.push_back({sizeof(fmhc_candidate), FMHC_AVAILABLE, name, nullptr, nullptr});
  for (const char* name : kOthers)
    candidates.push_back({sizeof(fmhc_candidate), FMHC_ABSENT, name, nullptr, nullptr});
  for (const Given& item : given) {
    bool known = false;
    for (fmhc_candidate& candidate : candidates) {
      if (item.name != candidate.name) continue;
      known = true;
      candidate.availability = item.state;
      candidate.version = item.version.empty() ? nullptr : item.version.c_str();
    }
    if (!known) {
      std::string names;
      for (const fmhc_candidate& candidate : candidates)
        names += (names.empty() ? "" : ", ") + std::string(candidate.name);
      throw Failure(kExitBad, "--with names \"" + item.name + "\"; accepted: " + names);
    }
  }
  return candidates;
}

fmhc_switches switches_of(const Options& options) {
  fmhc_switches switches{};
  switches.struct_size = sizeof switches;
  switches.order = value_of(kOrders, options.order, "--order");
  switches.strict = options.strict;
  switches.allow_untested = options.allow_untested;
  switches.use_flashinfer = options.flashinfer;
  switches.use_tilelang = options.tilelang;
  switches.use_aiter = options.aiter;
  switches.amd = options.amd;
  switches.backend = options.backend.c_str();
  return switches;
}

Json report_of(const Options& options, const std::vector<fmhc_candidate>& candidates,
               const std::vector<fmhc_verdict>& verdicts, int32_t code, const fmhc_diag& diag) {
  Json report = {{"schema", 1}, {"op", options.problem.op}, {"order", options.order}, {"chosen", nullptr}};
  report["reason"] = code == FMHC_OK ? Json(nullptr) : Json(diag.text);
  std::vector<Json> rows(candidates.size());
  for (size_t index = 0; index < candidates.size(); ++index) {
    const fmhc_verdict& verdict = verdicts[index];
    if (verdict.chosen != 0) report["chosen"] = candidates[index].name;
    rows[static_cast<size_t>(verdict.rank)] = {
        {"rank", verdict.rank},
        {"backend", candidates[index].name},
        {"availability", name_of(kStates, candidates[index].availability)},
        {"chosen", verdict.chosen != 0},
        {"reason", verdict.reason}};
  }
  report["candidates"] = rows;
  return report;
}

void print_text(const Json& report) {
  std::vector<std::vector<std::string>> rows = {{"rank", "backend", "", "reason"}};
  for (const Json& row : report["candidates"]) {
    rows.push_back({row["rank"].dump(), row["backend"].get<std::string>(),
                    row["chosen"].get<bool>() ? "*" : "", row["reason"].get<std::string>()});
  }
  print_table(rows);
  if (report["chosen"].is_null()) std::cout << '\n' << report["reason"].get<std::string>() << '\n';
}

int run(const Options& options) {
  const fmhc_problem problem = options.problem.problem();
  const fmhc_target target = options.target.target();
  std::list<Given> given;
  for (const std::string& text : options.with) given.push_back(parse_given(text));
  const std::vector<fmhc_candidate> candidates = candidates_of(given);
  const fmhc_switches switches = switches_of(options);
  std::vector<fmhc_verdict> verdicts(candidates.size());
  fmhc_diag diag{};
  const int32_t code = fmhc_resolve(&problem, &target, &switches, candidates.data(),
                                    static_cast<int32_t>(candidates.size()), verdicts.data(), &diag);
  if (code != FMHC_UNSUPPORTED) require_ok(code, diag);
  const Json report = report_of(options, candidates, verdicts, code, diag);
  options.json ? print_json(report) : print_text(report);
  return code == FMHC_OK ? kExitOk : kExitNo;
}

}  // namespace

Command add_resolve(CLI::App& app, const Environment& environment) {
  auto options = std::make_shared<Options>();
  options->backend = environment.value("FLASHMHC_BACKEND");
  options->strict = environment.strict();
  options->problem.add_to(app, environment);
  options->target.add_to(app);
  app.add_option(
      "--with", options->with,
      "What is installed: NAME, NAME=STATE or NAME=STATE:VERSION; states: available, absent, broken, "
      "untested. Ours are available, all others absent, unless named");
  app.add_option("--order", options->order, "auto (ours first) or sglang (the engine's own)")
      ->capture_default_str();
  app.add_option("--backend", options->backend, "A backend to use whatever the order");
  app.add_flag("--strict,!--no-strict", options->strict, "The named backend or none");
  app.add_flag("--allow-untested", options->allow_untested, "Untested versions are eligible");
  app.add_flag("--use-flashinfer", options->flashinfer,
               "The engine's FlashInfer switch is on (order sglang)");
  app.add_flag("--use-tilelang", options->tilelang, "The engine's TileLang switch is on (order sglang)");
  app.add_flag("--use-aiter", options->aiter, "The engine's aiter switch is on (order sglang)");
  app.add_flag("--amd", options->amd, "The device is an AMD GPU");
  add_json_flag(app, &options->json);
  app.footer("Exit code 1: none can serve.");
  return [options] { return run(*options); };
}

}  // namespace fmhc::cli
