// Packs fn once for the cluster kernels.
#pragma once

#include "backends/cuda/cluster/params.h"
#include "backends/cuda/common/math.cuh"

namespace fmhc::cuda::cluster {

// fn [logits, 4H] fp32, rows up to 24 as zeros, to fragments of two bf16 pieces:
// packed[CTA][step][multiplying warp][3][lane] of 16 bytes, the size of fn. Warp w, step i: stream w / 2,
// columns 64 (i / 2) + 32 (w % 2) + 16 (i % 2) of the CTA's slice. A lane's twelve words: for each tile of 8
// logits two words of high pieces, then the same of low ones.
__global__ void __launch_bounds__(256) pack_cluster_kernel(const __grid_constant__ PackParams p) {
  const int steps = p.hidden / 512;
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int lane = index & 31;
  const int warp = (index >> 5) & 7;
  const int step = (index >> 8) % steps;
  const int rank = (index >> 8) / steps;
  if (rank >= kCtas) return;
  const int column = (warp >> 1) * p.hidden + rank * (p.hidden / kCtas) + (step >> 1) * 64 + (warp & 1) * 32 +
                     (step & 1) * 16;
  uint32_t word[12];
#pragma unroll
  for (int part = 0; part < 6; ++part) {
    const int logit = (part >> 1) * 8 + (lane >> 2);
    const float* pair = p.fn + logit * p.fn_row + column + (part & 1) * 8 + 2 * (lane & 3);
    uint16_t low[3], high[3];
    split_weight(logit < p.logits ? pair[0] : 0.0f, low);
    split_weight(logit < p.logits ? pair[1] : 0.0f, high);
    word[part] = low[0] | static_cast<uint32_t>(high[0]) << 16;
    word[6 + part] = low[1] | static_cast<uint32_t>(high[1]) << 16;
  }
  auto* out =
      static_cast<uint4*>(p.packed) + ((static_cast<size_t>(rank) * steps + step) * 8 + warp) * 96 + lane;
#pragma unroll
  for (int part = 0; part < 3; ++part) {
    out[part * 32] = {word[4 * part], word[4 * part + 1], word[4 * part + 2], word[4 * part + 3]};
  }
}

}  // namespace fmhc::cuda::cluster
