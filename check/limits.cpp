#include "check/limits.h"

#include <algorithm>

#include "check/storage.h"

namespace fmhc::check {
namespace {

// Two to three times what an emulation of each class measures on normal data at K = 28672.
constexpr ClassLimits kClasses[] = {
    {0, 5e-6, 1e-6, 4e-6, 2e-6, 3e-6},            // F
    {0x1p-16, 8e-6, 2e-6, 2e-5, 1e-5, 1e-5},      // F2: fn keeps 16 bits
    {0x1p-11, 3e-4, 1.5e-4, 1.5e-3, 8e-4, 1e-3},  // R: fn rounded to 11 bits
};

// Searched over random matrices at logit scales 0.1 to 40; 20 rounds or more. After few rounds the columns
// are not yet balanced and the gain approaches 1.
constexpr double kGains[] = {0, 0, 0.51, 0.65, 0.65, 0.7, 0.75, 0.77, 0.8};
constexpr int32_t kBalancedRounds = 20;

// Chains of the cpu backend: the steps of a leaf at the narrowest vectors of a row, the leaves, the lanes.
constexpr int64_t kCpuLeaf = 512, kCpuSteps = 128, kCpuTree = 4;

}  // namespace

Arithmetic arithmetic_of(const std::string& kernel, int64_t columns) {
  Arithmetic arithmetic;
  if (kernel.starts_with("ref")) arithmetic.chain = 2;  // sums in double
  if (kernel.starts_with("cpu")) arithmetic.chain = kCpuSteps + columns / kCpuLeaf + kCpuTree;
  arithmetic.fused = !kernel.starts_with("cpu.sse4");  // the instruction set has no fused multiply-add
  return arithmetic;
}

const ClassLimits& class_limits(int32_t projection) {
  return kClasses[std::clamp(projection, 1, 3) - 1];
}

double roundoff_scale(int32_t residual_dtype) {
  return residual_dtype == FMHC_FP64 ? 0x1p-29 : 1.0;
}

double sinkhorn_gain(int32_t streams, int32_t iters) {
  if (streams <= 1) return 0;
  return iters >= kBalancedRounds ? kGains[std::min(streams, 8)] : 1.0;
}

double misrounded_share(int32_t dtype) {
  constexpr double kBf16Share = 2e-4;
  return std::ldexp(kBf16Share, find_format(dtype)->digits - find_format(FMHC_BF16)->digits);
}

}  // namespace fmhc::check
