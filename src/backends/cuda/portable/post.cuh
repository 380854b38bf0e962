// post for four streams: a thread takes 16 bytes of every stream of one token, a CTA a tile of columns of one
// token, so the coefficients are the same for the whole CTA. The mix is a chain over the sources, the
// sublayer's product last.
#pragma once

#include "backends/cuda/common/ptx.cuh"
#include "backends/cuda/common/storage.cuh"
#include "backends/cuda/params.h"

namespace fmhc::cuda {

struct Mix {
  float4 post;     // [dst]
  float4 comb[4];  // [src], components dst
};

__device__ __forceinline__ Mix load_mix(const PostParams& p, int64_t token) {
  Mix mix;
  const float* post = p.post.data + token * p.post.stride[0];
  const float* comb = p.comb.data + token * p.comb.stride[0];
  if (p.packed_mix != 0) {
    mix.post = *reinterpret_cast<const float4*>(post);
#pragma unroll
    for (int j = 0; j < 4; ++j) mix.comb[j] = reinterpret_cast<const float4*>(comb)[j];
    return mix;
  }
  const int64_t step = p.post.stride[1];
  mix.post = {post[0], post[step], post[2 * step], post[3 * step]};
  const int64_t dst = p.comb.stride[2];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float* row = comb + j * p.comb.stride[1];
    mix.comb[j] = {row[0], row[dst], row[2 * dst], row[3 * dst]};
  }
  return mix;
}

__device__ __forceinline__ float component(const float4& value, int index) {
  return index == 0 ? value.x : index == 1 ? value.y : index == 2 ? value.z : value.w;
}

// One new value: sum_j comb[j][k] x[j] by multiply-adds in ascending j, then post[k] z.
__device__ __forceinline__ float mix_one(const Mix& mix, int k, const float (&x)[4], float z) {
  float sum = component(mix.comb[0], k) * x[0];
#pragma unroll
  for (int j = 1; j < 4; ++j) sum = fmaf(component(mix.comb[j], k), x[j], sum);
  return fmaf(component(mix.post, k), z, sum);
}

template <typename T>
__global__ void __launch_bounds__(256) post_kernel(const __grid_constant__ PostParams p) {
  constexpr int kWidth = Vec<T>::kWidth;
  allow_dependents();
  wait_for_grids();
  const int64_t work = p.tokens * p.tiles;
  for (int64_t block = blockIdx.x; block < work; block += gridDim.x) {
    const int64_t token = block / p.tiles;
    const int64_t column = ((block - token * p.tiles) * blockDim.x + threadIdx.x) * kWidth;
    if (column >= p.hidden) continue;
    const T* in = static_cast<const T*>(p.residual.data) + token * p.residual.token + column;
    uint4 raw[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) raw[j] = load_stream(in + j * p.residual.stream);
    const uint4 raw_z =
        load_stream(static_cast<const T*>(p.sublayer_output.data) + token * p.sublayer_output.token + column);
    const Mix mix = load_mix(p, token);
    float x[4][kWidth], z[kWidth];
#pragma unroll
    for (int j = 0; j < 4; ++j) Vec<T>::unpack(raw[j], x[j]);
    Vec<T>::unpack(raw_z, z);
    T* out = static_cast<T*>(p.residual_out.data) + token * p.residual_out.token + column;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float mixed[kWidth];
#pragma unroll
      for (int c = 0; c < kWidth; ++c) {
        const float sources[4] = {x[0][c], x[1][c], x[2][c], x[3][c]};
        mixed[c] = mix_one(mix, k, sources, z[c]);
      }
      *reinterpret_cast<uint4*>(out + k * p.residual_out.stream) = Vec<T>::pack(mixed);
    }
  }
}

}  // namespace fmhc::cuda
