// Process-wide event counts, for tests and dashboards: relaxed atomics, never read by the library itself.
#pragma once

#include <cstdint>

#include "flashmhc/flashmhc.h"

namespace fmhc {

enum class Counter : uint8_t { kPlans, kRuns, kLaunches, kPrepares, kModuleLoads, kLateLoads };

void count(Counter counter, uint64_t amount = 1);
void read_counters(fmhc_counters_t* out);

}  // namespace fmhc
