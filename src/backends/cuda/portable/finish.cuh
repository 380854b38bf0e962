// finish for four streams, the end of head, and contract. One CTA a token. All warps but the last collapse,
// each thread kVectors times 16 bytes of every stream, loaded before the partial sums are looked at; the last
// warp runs the Sinkhorn meanwhile, which the layer input does not need. Partial sums meet in a fixed order:
// groups of eight slices ascending, then the groups ascending.
#pragma once

#include "backends/cuda/common/math.cuh"
#include "backends/cuda/common/reduce.cuh"
#include "backends/cuda/common/storage.cuh"
#include "backends/cuda/params.h"

namespace fmhc::cuda {

// Partial sums of one token: lanes 0..logits-1 the dots, lane `logits` the square sums. A warp takes every
// blockDim/32-th group of slices; the first eight values of its first group are fetched apart, so that other
// loads can follow them.
struct PartialSums {
  const float* from;  // of slice 0, this lane
  int64_t step;
  bool used;
  float part[8];

  __device__ __forceinline__ void seek(const FinishParams& p, int64_t token) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const bool square = lane == p.logits;
    from = square ? p.in.square + token * p.in.square_token : p.in.dot + token * p.in.dot_token + lane;
    step = square ? p.in.square_split : p.in.dot_split;
    used = lane <= p.logits;
  }

  __device__ __forceinline__ void fetch(int first, int end) {
    const float* at = from + first * step;
#pragma unroll
    for (int s = 0; s < 8; ++s, at += step) part[s] = used && first + s < end ? *at : 0.0f;
  }

  __device__ __forceinline__ void fetch_first(const FinishParams& p) {
    const int first = static_cast<int>(threadIdx.x) / 32 * p.group_slices;
    if (first < p.splits) fetch(first, min(p.splits, first + p.group_slices));
  }

  // The totals, in every warp; called by the whole CTA.
  template <bool kFetched>
  __device__ __forceinline__ float total(const FinishParams& p, float (&groups)[kMostGroups][32]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int warps = static_cast<int>(blockDim.x) / 32;
    for (int group = warp; group < p.groups; group += warps) {
      const int end = min(p.splits, (group + 1) * p.group_slices);
      float sum = 0;
      for (int first = group * p.group_slices; first < end; first += 8) {
        if (!kFetched || first != warp * p.group_slices) fetch(first, end);
#pragma unroll
        for (int s = 0; s < 8; ++s) sum += part[s];
      }
      groups[group][lane] = sum;
    }
    __syncthreads();
    float sum = 0;
#pragma unroll 4
    for (int group = 0; group < p.groups; ++group) sum += groups[group][lane];
    return sum;
  }
};

// Lane o gets logit o.
__device__ __forceinline__ float site_logit(const FinishParams& p, float total, float scale, float base) {
  const float square = __shfl_sync(kAllLanes, total, p.logits);
  return logit_of(total, inverse_root(fmaf(square, p.inverse_flat, p.rms_eps)), scale, base);
}

// The last warp: everything that is not the layer input.
__device__ __forceinline__ void write_site(const FinishParams& p, int64_t token, float logit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float gate = sigmoid(logit);
  if (lane < 4 && p.pre_mix.data != nullptr) {
    p.pre_mix.data[token * p.pre_mix.stride[0] + lane * p.pre_mix.stride[1]] = gate + p.pre_eps;
  }
  if (p.mode != kFinishSite) return;
  if (lane >= 4 && lane < 8) {
    p.post_mix.data[token * p.post_mix.stride[0] + (lane - 4) * p.post_mix.stride[1]] = p.post_mult * gate;
  }
  float c[4][4];
#pragma unroll
  for (int index = 0; index < 16; ++index) c[index / 4][index % 4] = __shfl_sync(kAllLanes, logit, 8 + index);
  if (p.sinkhorn_eps >= kScalingEpsLeast && p.sinkhorn_eps <= kScalingEpsMost) {
    sinkhorn_scaling(c, p.iterations, p.sinkhorn_eps);
  } else {
    sinkhorn_plain<4>(c, 4, p.iterations, p.sinkhorn_eps);
  }
  float mine = 0;
#pragma unroll
  for (int index = 0; index < 16; ++index) mine = lane == 8 + index ? c[index / 4][index % 4] : mine;
  if (lane >= 8 && lane < 24) {
    p.comb_mix.data[token * p.comb_mix.stride[0] + (lane - 8) / 4 * p.comb_mix.stride[1] +
                    (lane - 8) % 4 * p.comb_mix.stride[2]] = mine;
  }
}

template <int kWidth>
__device__ __forceinline__ void load_norm_weight(const FinishParams& p, int64_t column,
                                                 float (&weight)[kWidth]) {
  if (p.norm_weight_vector != 0 && p.norm_weight_bf16 != 0 && kWidth == 8) {
    float wide[8];
    Vec<DeviceBf16>::unpack(
        *reinterpret_cast<const uint4*>(static_cast<const DeviceBf16*>(p.norm_weight) + column), wide);
#pragma unroll
    for (int c = 0; c < kWidth; ++c) weight[c] = wide[c];
  } else if (p.norm_weight_vector != 0 && p.norm_weight_bf16 == 0) {
#pragma unroll
    for (int c = 0; c < kWidth; c += 4) {
      const float4 four =
          *reinterpret_cast<const float4*>(static_cast<const float*>(p.norm_weight) + column + c);
      weight[c] = four.x, weight[c + 1] = four.y, weight[c + 2] = four.z, weight[c + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) {
      const int64_t offset = (column + c) * p.norm_stride;
      weight[c] = p.norm_weight_bf16 != 0 ? widen(static_cast<const DeviceBf16*>(p.norm_weight)[offset])
                                          : static_cast<const float*>(p.norm_weight)[offset];
    }
  }
}

// The weights of the collapse, in every lane.
__device__ __forceinline__ void site_weights(const FinishParams& p, int64_t token, float logit,
                                             float (&weight)[4]) {
  if (p.pre_in.data != nullptr) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      weight[j] = p.pre_in.data[token * p.pre_in.stride[0] + j * p.pre_in.stride[1]];
  } else if (p.mode == kFinishMean) {
#pragma unroll
    for (int j = 0; j < 4; ++j) weight[j] = 0.25f;
  } else {
    const float pre = sigmoid(logit) + p.pre_eps;
#pragma unroll
    for (int j = 0; j < 4; ++j) weight[j] = __shfl_sync(kAllLanes, pre, j);
  }
}

template <typename T, int kVectors>
struct Collapse {
  static constexpr int kWidth = Vec<T>::kWidth;
  uint4 raw[kVectors][4];
  int column[kVectors];
  bool active[kVectors];

  __device__ __forceinline__ void load(const FinishParams& p, int64_t token, int threads) {
    const T* in = static_cast<const T*>(p.residual.data) + token * p.residual.token;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      column[v] = (static_cast<int>(threadIdx.x) + v * threads) * kWidth;
      active[v] = static_cast<int>(threadIdx.x) < threads && column[v] < p.hidden;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        raw[v][j] = active[v] ? load_stream(in + j * p.residual.stream + column[v]) : uint4{0, 0, 0, 0};
      }
    }
  }

  // Returns the square sum of this thread's values, as the norm counts them; `rounded` gets them in storage
  // form.
  __device__ __forceinline__ float collapse(const FinishParams& p, const float (&weight)[4],
                                            uint4 (&rounded)[kVectors]) {
    float square = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      float y[kWidth] = {};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float x[kWidth];
        Vec<T>::unpack(raw[v][j], x);
#pragma unroll
        for (int c = 0; c < kWidth; ++c) y[c] = fmaf(weight[j], x[c], y[c]);
      }
      rounded[v] = Vec<T>::pack(y);
      if (p.norm == 2) Vec<T>::unpack(rounded[v], y);
#pragma unroll
      for (int c = 0; c < kWidth; ++c) square = fmaf(y[c], y[c], square);
    }
    return square;
  }
};

__device__ __forceinline__ int64_t token_of_block(const FinishParams& p) {
  if (p.group_tokens == 0) return blockIdx.x;
  const int64_t step = blockIdx.x / static_cast<unsigned>(p.token_groups);
  const int64_t group = blockIdx.x % static_cast<unsigned>(p.token_groups);
  return (group + 1) * p.group_tokens - 1 - step;
}

// Registers: 1024 threads with one vector; three CTAs a multiprocessor of 288 threads with two (H = 4096);
// 512 with four.
template <typename T, int kVectors>
__global__ void __maxnreg__(kVectors == 1   ? 64
                            : kVectors == 2 ? 72
                                            : 128) finish_kernel(const __grid_constant__ FinishParams p) {
  constexpr int kWidth = Vec<T>::kWidth;
  // With one step a thread there is one token a multiprocessor and nothing else to hide a load behind.
  constexpr bool kLatency = kVectors == 1;
  __shared__ float groups[kMostGroups][32];
  __shared__ float slots[32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool from_logits = p.mode == kFinishSite || p.mode == kFinishHead;
  const int collapse_warps = static_cast<int>(blockDim.x) / 32 - (from_logits ? 1 : 0);
  const int64_t token = token_of_block(p);
  if (token >= p.tokens) return;
  const int group = p.mode == kFinishHead || lane < 4 ? 0 : lane < 8 ? 1 : 2;
  const bool has_logit = from_logits && lane < p.logits;
  PartialSums partials;
  if (kLatency) partials.seek(p, token);
  Collapse<T, kVectors> work;
  allow_dependents();
  if (p.residual_ready != 0) work.load(p, token, collapse_warps * 32);
  wait_for_grids();
  if (kLatency && from_logits) partials.fetch_first(p);
  if (p.residual_ready == 0) work.load(p, token, collapse_warps * 32);
  float logit = 0;
  if (from_logits) {
    const float base = has_logit ? p.base.data[lane * p.base.stride[0]] : 0.0f;
    const float scale = has_logit ? p.scale.data[group * p.scale.stride[0]] : 0.0f;
    if (!kLatency) partials.seek(p, token);
    logit = site_logit(p, partials.total<kLatency>(p, groups), scale, base);
  }
  if (from_logits && warp == collapse_warps) {
    write_site(p, token, logit);
    return;
  }
  float norm[kWidth];
  if (kLatency && p.norm != 0 && work.active[0]) load_norm_weight<kWidth>(p, work.column[0], norm);
  float weight[4];
  site_weights(p, token, logit, weight);
  uint4 rounded[kVectors];
  float square = work.collapse(p, weight, rounded);
  float rstd = 0;
  if (p.norm != 0) {
    square = warps_sum(square, slots, collapse_warps, 1);
    rstd = inverse_root(fmaf(square, p.inverse_hidden, p.norm_eps));
  }
  T* out = static_cast<T*>(p.layer_input.data) + token * p.layer_input.token;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (!work.active[v]) continue;
    if (p.norm != 0) {
      float y[kWidth];
      Vec<T>::unpack(rounded[v], y);
      if (!kLatency) load_norm_weight<kWidth>(p, work.column[v], norm);
#pragma unroll
      for (int c = 0; c < kWidth; ++c) y[c] = y[c] * rstd * norm[c];
      rounded[v] = Vec<T>::pack(y);
    }
    *reinterpret_cast<uint4*>(out + work.column[v]) = rounded[v];
  }
}

}  // namespace fmhc::cuda
