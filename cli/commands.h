// One function a subcommand: it adds its options to `app` and returns what to run when the subcommand was
// given. The options it binds live in the returned function. A Failure thrown from it ends the tool with its
// exit code.
#pragma once

#include "cli/console.h"
#include "cli/environment.h"

namespace fmhc::cli {

using Command = std::function<int()>;

Command add_info(CLI::App& app, const Environment& environment);
Command add_plan(CLI::App& app, const Environment& environment);
Command add_inspect(CLI::App& app, const Environment& environment);
Command add_synth(CLI::App& app, const Environment& environment);
Command add_resolve(CLI::App& app, const Environment& environment);
Command add_verify(CLI::App& app, const Environment& environment);
Command add_bench(CLI::App& app, const Environment& environment);

}  // namespace fmhc::cli
