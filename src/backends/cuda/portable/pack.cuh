// Packs fn once for the tensor core kernels.
#pragma once

#include "backends/cuda/common/math.cuh"
#include "backends/cuda/params.h"

namespace fmhc::cuda {

// fn [N, K] fp32 to fragments: packed[block of 32 columns][piece][tile of 8 logits][lane] of 16 bytes.
__global__ void __launch_bounds__(256) pack_kernel(const __grid_constant__ PackParams p) {
  const int64_t work = p.flat / 32 * p.tiles * 32;
  for (int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; index < work;
       index += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    const int lane = static_cast<int>(index % 32);
    const int tile = static_cast<int>(index / 32 % p.tiles);
    const int64_t block = index / 32 / p.tiles;
    const int logit = tile * 8 + lane / 4;
    uint16_t piece[8][3];
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const float value = logit < p.logits ? p.fn[logit * p.fn_row + block * 32 + lane % 4 * 8 + c] : 0.0f;
      split_weight(value, piece[c]);
    }
    auto* out = static_cast<uint4*>(p.packed) + block * p.pieces * p.tiles * 32 + tile * 32 + lane;
#pragma unroll
    for (int part = 0; part < 3; ++part) {
      if (part >= p.pieces) break;
      uint32_t word[4];
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        word[pair] = piece[2 * pair][part] | static_cast<uint32_t>(piece[2 * pair + 1][part]) << 16;
      }
      out[part * p.tiles * 32] = {word[0], word[1], word[2], word[3]};
    }
  }
}

// Between the packing and whatever follows: starts only when the packing is complete, so that a dependent
// launch behind it may read packed weights before it waits.
__global__ void fence_kernel() {}

}  // namespace fmhc::cuda
