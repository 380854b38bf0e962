// The subcommands.
#pragma once

#include "report.h"

namespace fmhc_gpu {

Result run_smoke(const Options& options);
Result run_tests(const Options& options);
Result run_sanitize(const Options& options);
Result run_bench(const Options& options);
Result run_sweep(const Options& options);

// With --part: that part, in this process; else all parts, each in a child.
Result run_command(const Options& options, const char* name, const std::vector<Part>& parts, double seconds);

}  // namespace fmhc_gpu
