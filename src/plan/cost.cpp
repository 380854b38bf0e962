// The cost model: microseconds from the byte and flop counts of ops/, the kernel's traits and the machine's
// rates.
#include <algorithm>

#include "plan/planner.h"

namespace fmhc {
namespace {

// Rates a kernel can hope for. Only their ratios choose between kernels, so round numbers do.
struct Rates {
  double bytes_per_us;
  double flops_per_us;
  double launch_us;
};

// One core: 8 GB/s a thread of memory bandwidth, 8 Gflop/s scalar. CUDA: an H200's copy bandwidth and fp32
// peak.
constexpr Rates kCpuThread = {8e3, 8e3, 1.0};
constexpr Rates kCudaUnit = {4.3e6 / 132, 60e6 / 132, 2.0};

}  // namespace

double predicted_us(const KernelEntry& kernel, const Problem& problem, const Target& target, int64_t tokens,
                    int32_t split_k) {
  const Rates& rates = target.device_kind == FMHC_CPU ? kCpuThread : kCudaUnit;
  const Traffic traffic = ideal_traffic(problem, tokens);
  const double units = std::max(1, target.num_units);
  const double bytes = traffic.token_bytes * kernel.traits.residual_visits + traffic.weight_bytes;
  const double memory_us = bytes / (rates.bytes_per_us * units);
  const double math_us = traffic.flops / (rates.flops_per_us * units * kernel.traits.speed);
  const double combine_us = 0.01 * split_k;
  return kernel.traits.launches * rates.launch_us + std::max(memory_us, math_us) + combine_us;
}

}  // namespace fmhc
