#include "core/counters.h"

#include <atomic>

namespace fmhc {
namespace {

std::atomic<uint64_t> counts[6];

}  // namespace

void count(Counter counter, uint64_t amount) {
  counts[static_cast<int>(counter)].fetch_add(amount, std::memory_order_relaxed);
}

void read_counters(fmhc_counters_t* out) {
  const auto value = [](Counter counter) {
    return counts[static_cast<int>(counter)].load(std::memory_order_relaxed);
  };
  *out = {sizeof(fmhc_counters_t),      0,
          value(Counter::kPlans),       value(Counter::kRuns),
          value(Counter::kLaunches),    value(Counter::kPrepares),
          value(Counter::kModuleLoads), value(Counter::kLateLoads)};
}

}  // namespace fmhc
