// The cost model: microseconds from the byte and flop counts of ops/, the kernel's traits and the machine's
// rates, corrected by measured points where there are any.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/dtype.h"
#include "plan/tuned.h"
#include "plan/tuned_sm80.h"
#include "plan/tuned_sm90.h"

namespace fmhc {
namespace {

// Rates a kernel can hope for. Only their ratios choose between kernels, so round numbers do.
struct Rates {
  double bytes_per_us;
  double ops_per_us;
  double launch_us;
};

// A CPU thread: 8 GB/s of memory bandwidth, 60 Gop/s in AVX-512. A multiprocessor: an H200's copy bandwidth
// and fp32 peak.
constexpr Rates kCpuThread = {8e3, 60e3, 1.0};
constexpr Rates kCudaUnit = {4.3e6 / 132, 60e6 / 132, 2.0};

constexpr double kCombineUs = 0.01;  // a partial of K more to add up

double modelled_us(const KernelEntry& kernel, const Problem& problem, const Target& target, int64_t tokens,
                   int32_t split_k) {
  const Rates& rates = target.device_kind == FMHC_CPU ? kCpuThread : kCudaUnit;
  const Traffic traffic = ideal_traffic(problem, tokens);
  const double units = std::max(1, target.num_units);
  const double bytes = traffic.token_bytes * kernel.traits.residual_visits + traffic.weight_bytes;
  // Moving an element costs an operation too: without it a scalar kernel would seem as fast as the memory.
  const double ops = traffic.flops + traffic.token_bytes / dtype_bytes(problem.residual_dtype);
  const double memory_us = bytes / (rates.bytes_per_us * units);
  const double math_us = ops / (rates.ops_per_us * units * kernel.traits.speed);
  return kernel.traits.launches * rates.launch_us + std::max(memory_us, math_us) + kCombineUs * split_k;
}

}  // namespace

TunedPoints tuned_points(const Target& target) {
  if (target.device_kind != FMHC_CUDA) return {};
  return target.arch < 90 ? TunedPoints(kTunedSm80) : TunedPoints(kTunedSm90);
}

double corrected_us(TunedPoints points, const KernelEntry& kernel, const Problem& problem,
                    const Target& target, int64_t tokens, int32_t split_k) {
  const TunedPoint* below = nullptr;
  const TunedPoint* above = nullptr;
  const bool measured_kind = problem.streams == 4 && problem.residual_dtype == FMHC_BF16;
  for (const TunedPoint& point : points) {
    if (!measured_kind || point.hidden != problem.hidden || std::strcmp(kernel.name, point.kernel) != 0)
      continue;
    if (point.tokens <= tokens && (below == nullptr || point.tokens > below->tokens)) below = &point;
    if (point.tokens >= tokens && (above == nullptr || point.tokens < above->tokens)) above = &point;
  }
  const double model = modelled_us(kernel, problem, target, tokens, split_k);
  if (below == nullptr) below = above;
  if (above == nullptr) above = below;
  if (below == nullptr) return model;
  const auto ratio = [&](const TunedPoint& point) {
    return point.us / modelled_us(kernel, problem, target, point.tokens, split_k);
  };
  if (below->tokens == above->tokens) return model * ratio(*below);
  const auto log_tokens = [](int64_t count) { return std::log2(static_cast<double>(count)); };
  const double way = (log_tokens(tokens) - log_tokens(below->tokens)) /
                     (log_tokens(above->tokens) - log_tokens(below->tokens));
  return model * (ratio(*below) * (1 - way) + ratio(*above) * way);
}

double predicted_us(const KernelEntry& kernel, const Problem& problem, const Target& target, int64_t tokens,
                    int32_t split_k) {
  return corrected_us(tuned_points(target), kernel, problem, target, tokens, split_k);
}

}  // namespace fmhc
