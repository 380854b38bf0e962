// expand and post for any number of streams, any hidden size and any strides; one CTA a token and column
// tile.
#pragma once

#include "backends/cuda/common/ptx.cuh"
#include "backends/cuda/common/storage.cuh"
#include "backends/cuda/params.h"

namespace fmhc::cuda {

inline constexpr int kMaxStreams = 8;

// A copy: Unit is 16 bytes where everything is aligned, else one element.
template <typename Unit>
__global__ void __launch_bounds__(256) expand_kernel(const __grid_constant__ ExpandParams p) {
  allow_dependents();
  wait_for_grids();
  const int64_t tiles = (p.width + blockDim.x - 1) / blockDim.x;
  const int64_t work = p.tokens * tiles;
  for (int64_t block = blockIdx.x; block < work; block += gridDim.x) {
    const int64_t token = block / tiles;
    const int64_t column = (block - token * tiles) * blockDim.x + threadIdx.x;
    if (column >= p.width) continue;
    const Unit value = static_cast<const Unit*>(p.in)[token * p.in_token + column];
    Unit* out = static_cast<Unit*>(p.out) + token * p.out_token + column;
    for (int j = 0; j < p.streams; ++j) out[j * p.out_stream] = value;
  }
}

template <typename T>
__global__ void __launch_bounds__(256) post_generic_kernel(const __grid_constant__ PostParams p) {
  allow_dependents();
  wait_for_grids();
  const int64_t tiles = (p.hidden + blockDim.x - 1) / blockDim.x;
  const int64_t work = p.tokens * tiles;
  for (int64_t block = blockIdx.x; block < work; block += gridDim.x) {
    const int64_t token = block / tiles;
    const int64_t column = (block - token * tiles) * blockDim.x + threadIdx.x;
    if (column >= p.hidden) continue;
    const T* in = static_cast<const T*>(p.residual.data) + token * p.residual.token + column;
    T* out = static_cast<T*>(p.residual_out.data) + token * p.residual_out.token + column;
    const float z =
        widen(static_cast<const T*>(p.sublayer_output.data)[token * p.sublayer_output.token + column]);
    float stream[kMaxStreams];
#pragma unroll
    for (int j = 0; j < kMaxStreams; ++j) {
      stream[j] = j < p.streams ? widen(in[j * p.residual.stream]) : 0.0f;
    }
    const float* comb = p.comb.data + token * p.comb.stride[0];
    for (int k = 0; k < p.streams; ++k) {
      float mixed = 0;
#pragma unroll
      for (int j = 0; j < kMaxStreams; ++j) {
        if (j < p.streams) mixed = fmaf(comb[j * p.comb.stride[1] + k * p.comb.stride[2]], stream[j], mixed);
      }
      const float post = p.post.data[token * p.post.stride[0] + k * p.post.stride[1]];
      out[k * p.residual_out.stream] = round_to<T>(fmaf(post, z, mixed));
    }
  }
}

}  // namespace fmhc::cuda
