// Sums over lanes and warps in a fixed order.
#pragma once

#include "backends/cuda/common/ptx.cuh"

namespace fmhc::cuda {

constexpr unsigned kAllLanes = 0xffffffffu;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

// The sum over the first `warps` warps, all of which call it; `slots` holds a float a warp.
__device__ __forceinline__ float warps_sum(float value, float* slots, int warps, int barrier) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) slots[warp] = value;
  named_barrier(barrier, warps * 32);
  float sum = 0;
  for (int other = 0; other < warps; ++other) sum += slots[other];
  return sum;
}

}  // namespace fmhc::cuda
