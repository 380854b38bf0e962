// flashmhc verify: replays recorded traces with a backend and says, site by site, how well it agrees with the
// fp64 oracle and with the recording.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/thread_pool.h"
#include "cli/verify_output.h"

namespace fmhc::cli {
namespace {

struct Options {
  std::vector<std::string> traces;
  std::string kernel, vs = "both", json, bound_file;
  int threads = 0;
  bool summary = false;
  std::vector<std::pair<std::string, double>> bounds;
};

std::string option_name(std::string tensor) {
  std::replace(tensor.begin(), tensor.end(), '_', '-');
  return "--bound-" + tensor;
}

VerifyConfig make_config(const Options& options, const ThreadPool& pool) {
  VerifyConfig config;
  config.kernel = options.kernel == "auto" ? "" : options.kernel;
  config.executor = pool.executor();
  config.oracle = options.vs != "recorded";
  config.recorded = options.vs != "ref";
  if (!options.bound_file.empty()) config.limits.load(options.bound_file);
  for (const auto& [tensor, limit] : options.bounds) config.limits.set(tensor, limit);
  return config;
}

TraceResult verify(const TraceCalls& trace, const VerifyConfig& config) {
  Progress progress(trace.trace().file().path(), 2 * (trace.sites() + 1));
  const auto step = [&] { progress.advance(); };
  Replay replay(trace, config, step);
  replay.run();
  return {trace.trace().file().path(), trace.constants(), replay.kernels(), replay.records(),
          run_free(
              trace, [&](const Case& call) { return run_backend(config, call); }, step)};
}

// The file appears complete or not at all.
void write_json(const std::string& path, const Json& json) {
  if (path == "-") return print_json(json);
  const std::string unfinished = path + ".tmp";
  std::ofstream out(unfinished);
  out << json.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(unfinished, path, error);
  if (out && !error) return;
  std::filesystem::remove(unfinished, error);
  throw Failure(kExitBad, path + ": cannot be written");
}

int run(const Options& options) {
  const ThreadPool pool(options.threads > 0 ? options.threads : hardware_threads());
  const VerifyConfig config = make_config(options, pool);
  // All files are opened before the first is replayed: a bad one is told at once.
  std::vector<TraceCalls> traces;
  for (const std::string& path : options.traces) traces.push_back(open_trace(path));
  std::vector<TraceResult> results;
  bool passed = true;
  for (const TraceCalls& trace : traces) {
    results.push_back(verify(trace, config));
    if (options.json != "-") print_result(results.back(), options.summary);
    passed = passed && results.back().passed();
  }
  if (!options.json.empty()) write_json(options.json, to_json(results, config));
  return passed ? kExitOk : kExitNo;
}

}  // namespace

Command add_verify(CLI::App& app, const Environment& environment) {
  auto options = std::make_shared<Options>();
  options->kernel = environment.kernel_prefix();
  app.add_option("TRACE", options->traces, "Recorded or synthetic traces (safetensors)")->required();
  app.add_option(
      "--backend,--kernel", options->kernel,
      "A backend, a kernel's name or a dotted prefix of it: ref, cpu, cpu.avx2; default: the planner's");
  app.add_option("--vs", options->vs, "What to compare with: ref (fp64 oracle), recorded, both")
      ->check(CLI::IsMember({"ref", "recorded", "both"}))
      ->capture_default_str();
  app.add_option("--threads", options->threads, "Threads of the CPU backends; default: all of this machine")
      ->check(CLI::PositiveNumber);
  app.add_flag("--summary", options->summary, "Show the worst site of each tensor alone");
  app.add_option("--json", options->json,
                 "Write everything as one JSON object to this file, - for standard output");
  app.add_option("--bound", options->bound_file, "File of bounds that replace the built-in ones");
  for (const std::string& tensor : Limits::tensors()) {
    const bool mix = tensor.ends_with("_mix");
    app.add_option_function<double>(
           option_name(tensor),
           [options, tensor](const double& limit) { options->bounds.emplace_back(tensor, limit); },
           std::string(mix ? "Largest difference" : "Largest relative norm of the difference") + " of " +
               tensor)
        ->group("Bounds");
  }
  return [options] { return run(*options); };
}

}  // namespace fmhc::cli
