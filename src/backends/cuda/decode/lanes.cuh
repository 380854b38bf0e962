// Arithmetic on a granule: 8 columns of the four streams of a token in one thread, 16 bytes a stream.
#pragma once

#include "backends/cuda/common/reduce.cuh"
#include "backends/cuda/common/storage.cuh"
#include "backends/cuda/decode/params.h"

namespace fmhc::cuda::decode {

__device__ __forceinline__ void set_word(uint4& value, int index, uint32_t word) {
  if (index == 0) value.x = word;
  if (index == 1) value.y = word;
  if (index == 2) value.z = word;
  if (index == 3) value.w = word;
}

// The streams become the new residual, rounded to storage. mix: post[4], comb[src][dst] in shared memory.
__device__ __forceinline__ void post_granule(uint4 (&streams)[4], const uint4& sublayer, const float* mix) {
  const float4 post = *reinterpret_cast<const float4*>(mix);
  float4 comb[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) comb[j] = *reinterpret_cast<const float4*>(mix + 4 + 4 * j);
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const float2 z = unpack_pair(word_of(sublayer, pair), DeviceBf16{});
    float2 sum[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 r = unpack_pair(word_of(streams[j], pair), DeviceBf16{});
      const float row[4] = {comb[j].x, comb[j].y, comb[j].z, comb[j].w};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        sum[k].x = j == 0 ? row[k] * r.x : fmaf(row[k], r.x, sum[k].x);
        sum[k].y = j == 0 ? row[k] * r.y : fmaf(row[k], r.y, sum[k].y);
      }
    }
    const float weight[4] = {post.x, post.y, post.z, post.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      set_word(streams[k], pair,
               pack_pair(fmaf(weight[k], z.x, sum[k].x), fmaf(weight[k], z.y, sum[k].y), DeviceBf16{}));
    }
  }
}

// moments[0]: the square sum of the four streams. With kGram also [1..10]: the streams' Gram matrix, by
// diagonals: 00 11 22 33, 01 12 23, 02 13, 03.
template <bool kGram>
__device__ __forceinline__ void moments_of(const uint4 (&streams)[4], float (&moments)[12]) {
#pragma unroll
  for (int index = 0; index < 12; ++index) moments[index] = 0;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    float2 r[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) r[j] = unpack_pair(word_of(streams[j], pair), DeviceBf16{});
    int place = 1;
#pragma unroll
    for (int diagonal = 0; diagonal < (kGram ? 4 : 1); ++diagonal) {
#pragma unroll
      for (int j = 0; j + diagonal < 4; ++j, ++place) {
        moments[place] = fmaf(r[j].y, r[j + diagonal].y, fmaf(r[j].x, r[j + diagonal].x, moments[place]));
      }
    }
  }
  moments[0] = (moments[1] + moments[2]) + (moments[3] + moments[4]);
}

__device__ __forceinline__ void collapse_granule(const uint4 (&streams)[4], const float (&pre)[4],
                                                 float (&y)[8]) {
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    float2 sum = {0, 0};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 r = unpack_pair(word_of(streams[j], pair), DeviceBf16{});
      sum.x = fmaf(pre[j], r.x, sum.x);
      sum.y = fmaf(pre[j], r.y, sum.y);
    }
    y[2 * pair] = sum.x;
    y[2 * pair + 1] = sum.y;
  }
}

__device__ __forceinline__ void round_granule(float (&y)[8]) {
  const uint4 packed = Vec<DeviceBf16>::pack(y);
  Vec<DeviceBf16>::unpack(packed, y);
}

__device__ __forceinline__ void load_norm_weight(const Params& params, int column, float (&weight)[8]) {
  if (params.norm_weight_bf16 != 0) {
    Vec<DeviceBf16>::unpack(load_stream(static_cast<const DeviceBf16*>(params.norm_weight) + column), weight);
    return;
  }
  const auto* values = static_cast<const float4*>(params.norm_weight) + column / 4;
  const float4 low = values[0];
  const float4 high = values[1];
  const float all[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int index = 0; index < 8; ++index) weight[index] = all[index];
}

// Sums over the `width` lanes (a power of two) that share a token.
template <int kWidth>
__device__ __forceinline__ float group_sum(float value) {
#pragma unroll
  for (int offset = 1; offset < kWidth; offset *= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

}  // namespace fmhc::cuda::decode
