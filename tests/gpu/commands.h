// The subcommands.
#pragma once

#include "report.h"

namespace fmhc_gpu {

bool run_smoke(const Options& options);
bool run_tests(const Options& options);
bool run_sanitize(const Options& options);
bool run_bench(const Options& options);
bool run_sweep(const Options& options);

// With --part: that part, in this process; else all parts, each in a child.
bool run_command(const Options& options, const char* name, const std::vector<Part>& parts, double seconds);

}  // namespace fmhc_gpu
