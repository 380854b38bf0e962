// finish, the end of head, and contract for any number of streams, hidden size, storage and strides. One CTA
// a token: partial sums in ascending order, coefficients, collapse, norm. Rounded values wait for the norm in
// layer_input, each read back by the thread that wrote it.
#pragma once

#include "backends/cuda/common/math.cuh"
#include "backends/cuda/common/reduce.cuh"
#include "backends/cuda/common/storage.cuh"
#include "backends/cuda/params.h"

namespace fmhc::cuda {

inline constexpr int kFinishWarps = 8;
inline constexpr int kMostLogits = 80;

__device__ __forceinline__ float norm_weight_at(const FinishParams& p, int64_t h) {
  const int64_t offset = h * p.norm_stride;
  return p.norm_weight_bf16 != 0 ? widen(static_cast<const DeviceBf16*>(p.norm_weight)[offset])
                                 : static_cast<const float*>(p.norm_weight)[offset];
}

// One warp, lane j holds row j. Columns meet by butterflies over eight lanes.
__device__ __forceinline__ void sinkhorn_warp(float (&row)[8], int n, int iterations, float eps) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool mine = lane < n;
  float most = row[0];
#pragma unroll
  for (int k = 1; k < 8; ++k) most = k < n ? fmaxf(most, row[k]) : most;
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    row[k] = mine && k < n ? expf(row[k] - most) : 0.0f;
    sum += row[k];
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) row[k] = mine && k < n ? quotient(row[k], sum) + eps : 0.0f;
  for (int step = 0; step < iterations; ++step) {
    if (step > 0) {
      sum = 0;
#pragma unroll
      for (int k = 0; k < 8; ++k) sum += row[k];
#pragma unroll
      for (int k = 0; k < 8; ++k) row[k] = mine && k < n ? quotient(row[k], sum + eps) : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      float column = row[k];
      column += __shfl_xor_sync(kAllLanes, column, 1);
      column += __shfl_xor_sync(kAllLanes, column, 2);
      column += __shfl_xor_sync(kAllLanes, column, 4);
      row[k] = mine && k < n ? quotient(row[k], column + eps) : 0.0f;
    }
  }
}

// Sums the partials of one token into totals[0..logits], the square sum last. Called by the whole CTA.
__device__ __forceinline__ void sum_partials(const FinishParams& p, int64_t token, float* totals) {
  for (int output = threadIdx.x; output <= p.logits; output += blockDim.x) {
    const bool square = output == p.logits;
    const float* from =
        square ? p.in.square + token * p.in.square_token : p.in.dot + token * p.in.dot_token + output;
    const int64_t step = square ? p.in.square_split : p.in.dot_split;
    float sum = 0;
    for (int s = 0; s < p.splits; ++s) sum += from[s * step];
    totals[output] = sum;
  }
  __syncthreads();
}

__device__ __forceinline__ float pre_of(const FinishParams& p, const float* totals, int j) {
  const float rstd = inverse_root(
      totals[p.logits] / (static_cast<float>(p.hidden) * static_cast<float>(p.streams)) + p.rms_eps);
  return sigmoid(logit_of(totals[j], rstd, p.scale.data[0], p.base.data[j * p.base.stride[0]])) + p.pre_eps;
}

// post_mix and comb_mix of one token, by one warp.
__device__ __forceinline__ void write_mixes(const FinishParams& p, int64_t token, const float* totals) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int n = p.streams;
  const float rstd = inverse_root(fmaf(totals[p.logits], p.inverse_flat, p.rms_eps));
  const auto logit = [&](int index, int group) {
    return logit_of(totals[index], rstd, p.scale.data[group * p.scale.stride[0]],
                    p.base.data[index * p.base.stride[0]]);
  };
  if (lane < n) {
    p.post_mix.data[token * p.post_mix.stride[0] + lane * p.post_mix.stride[1]] =
        p.post_mult * sigmoid(logit(n + lane, 1));
  }
  float row[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) row[k] = lane < n && k < n ? logit(2 * n + lane * n + k, 2) : 0.0f;
  sinkhorn_warp(row, n, p.iterations, p.sinkhorn_eps);
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    if (lane < n && k < n) {
      p.comb_mix.data[token * p.comb_mix.stride[0] + lane * p.comb_mix.stride[1] + k * p.comb_mix.stride[2]] =
          row[k];
    }
  }
}

// The weights of the collapse, the same in every thread; also writes pre_mix.
__device__ __forceinline__ void collapse_weights(const FinishParams& p, int64_t token, const float* totals,
                                                 float (&weight)[8]) {
  const bool from_logits = p.mode == kFinishSite || p.mode == kFinishHead;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    weight[j] = 0;
    if (j >= p.streams) continue;
    const float pre = from_logits ? pre_of(p, totals, j) : 1.0f / static_cast<float>(p.streams);
    if (p.pre_mix.data != nullptr && threadIdx.x == 0) {
      p.pre_mix.data[token * p.pre_mix.stride[0] + j * p.pre_mix.stride[1]] = pre;
    }
    weight[j] =
        p.pre_in.data != nullptr ? p.pre_in.data[token * p.pre_in.stride[0] + j * p.pre_in.stride[1]] : pre;
  }
}

template <typename T>
__global__ void __launch_bounds__(32 * kFinishWarps)
    finish_generic_kernel(const __grid_constant__ FinishParams p) {
  __shared__ float totals[kMostLogits + 1];
  __shared__ float slots[kFinishWarps];
  allow_dependents();
  wait_for_grids();
  for (int64_t token = blockIdx.x; token < p.tokens; token += gridDim.x) {
    if (p.mode == kFinishSite || p.mode == kFinishHead) sum_partials(p, token, totals);
    float weight[8];
    collapse_weights(p, token, totals, weight);
    const T* in = static_cast<const T*>(p.residual.data) + token * p.residual.token;
    T* out = static_cast<T*>(p.layer_input.data) + token * p.layer_input.token;
    float square = 0;
    for (int64_t h = threadIdx.x; h < p.hidden; h += blockDim.x) {
      float y = 0;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (j < p.streams) y = fmaf(weight[j], widen(in[j * p.residual.stream + h]), y);
      }
      const T rounded = round_to<T>(y);
      const float counted = p.norm == 2 ? widen(rounded) : y;
      square = fmaf(counted, counted, square);
      out[h] = rounded;
    }
    if (p.norm != 0) {
      const float total = warps_sum(square, slots, kFinishWarps, 1);
      const float rstd = inverse_root(fmaf(total, p.inverse_hidden, p.norm_eps));
      for (int64_t h = threadIdx.x; h < p.hidden; h += blockDim.x) {
        out[h] = round_to<T>(widen(out[h]) * rstd * norm_weight_at(p, h));
      }
    }
    if (p.mode == kFinishSite && threadIdx.x / 32 == kFinishWarps - 1) write_mixes(p, token, totals);
    __syncthreads();
  }
}

}  // namespace fmhc::cuda
