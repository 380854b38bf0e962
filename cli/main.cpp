// The command line tool: one row a subcommand.
#include <iostream>

#include "cli/commands.h"

namespace fmhc::cli {
namespace {

struct Row {
  const char* name;
  const char* description;
  Command (*add)(CLI::App& app, const Environment& environment);
};

constexpr Row kRows[] = {
    {"info", "What this build and this machine can do, and every environment variable", add_info},
    {"verify", "Replay traces and compare every site with the fp64 oracle and with the recording",
     add_verify},
    {"plan", "Which kernel would run for which token counts, and why", add_plan},
    {"inspect", "Hyper-connection weights of a checkpoint or trace: shapes, statistics, what is missing",
     add_inspect},
    {"synth", "Random trace of a model's shape, for replaying full-size layers anywhere", add_synth},
    {"resolve", "Which library would serve a problem, and why none of the others", add_resolve},
    {"bench", "Time of every operator on this CPU, against what the machine can do at best", add_bench},
};

// Exit code for what the environment says, printing it.
int check_environment(const Environment& environment) {
  for (const std::string& line : environment.bad_values()) std::cerr << "flashmhc: " << line << '\n';
  if (!environment.bad_values().empty()) return kExitBad;
  for (const std::string& line : environment.unknown_names()) {
    std::cerr << "flashmhc: " << (environment.strict() ? "" : "warning: ") << line << '\n';
  }
  return environment.strict() && !environment.unknown_names().empty() ? kExitBad : kExitOk;
}

int run(const char* name, const Command& command) {
  try {
    const int code = command();
    std::cout.flush();
    if (!std::cout) throw Failure(kExitBad, "standard output could not be written");
    return code;
  } catch (const Failure& failure) {
    std::cerr << "flashmhc " << name << ": " << failure.what() << '\n';
    return failure.exit_code();
  } catch (const std::bad_alloc&) {
    std::cerr << "flashmhc " << name << ": out of memory\n";
    return kExitBad;
  } catch (const std::exception& bug) {
    std::cerr << "flashmhc " << name << ": internal error: " << bug.what() << '\n';
    return kExitBug;
  }
}

int main(int argc, const char* const* argv) {
  CLI::App app("Hyper-connections (mHC) of DeepSeek-V4-class models: verify, plan and measure.", "flashmhc");
  app.set_version_flag("--version", std::string("flashmhc ") + fmhc_version());
  app.require_subcommand(1);
  app.footer("Exit codes: 0 ok; 1 a bound is exceeded or the answer is no; 2 bad usage or a bad file.");
  const Environment environment = Environment::of_this_process();
  std::vector<Command> commands;
  for (const Row& row : kRows) {
    CLI::App* subcommand = app.add_subcommand(row.name, row.description);
    commands.push_back(row.add(*subcommand, environment));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitBad;
  }
  if (const int code = check_environment(environment); code != kExitOk) return code;
  for (size_t index = 0; index < commands.size(); ++index) {
    if (app.got_subcommand(kRows[index].name)) return run(kRows[index].name, commands[index]);
  }
  return kExitBad;
}

}  // namespace
}  // namespace fmhc::cli

int main(int argc, char** argv) {
  return fmhc::cli::main(argc, argv);
}
