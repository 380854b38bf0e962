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

inline constexpr int kMostGroups = 32;

// Lanes 0..logits-1 return the dots of a token, lane `logits` its square sum. Called by the whole CTA.
__device__ __forceinline__ float collect_partials(const FinishParams& p, int64_t token,
                                                  float (&groups)[kMostGroups][32]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int size = max(8, (p.splits + kMostGroups - 1) / kMostGroups);
  const int count = (p.splits + size - 1) / size;
  const bool square = lane == p.logits;
  const float* from =
      square ? p.in.square + token * p.in.square_token : p.in.dot + token * p.in.dot_token + lane;
  const int64_t step = square ? p.in.square_split : p.in.dot_split;
  for (int group = warp; group < count; group += warps) {
    const int end = min(p.splits, (group + 1) * size);
    float sum = 0;
    for (int first = group * size; first < end; first += 8) {
      float part[8];
#pragma unroll
      for (int s = 0; s < 8; ++s)
        part[s] = lane <= p.logits && first + s < end ? from[(first + s) * step] : 0.0f;
#pragma unroll
      for (int s = 0; s < 8; ++s) sum += part[s];
    }
    groups[group][lane] = sum;
  }
  __syncthreads();
  float total = 0;
  for (int group = 0; group < count; ++group) total += groups[group][lane];
  return total;
}

// Lane o gets logit o.
__device__ __forceinline__ float site_logit(const FinishParams& p, float total, float scale, float base) {
  const float square = __shfl_sync(kAllLanes, total, p.logits);
  const float rstd = inverse_root(square / (4.0f * static_cast<float>(p.hidden)) + p.rms_eps);
  return logit_of(total, rstd, scale, base);
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
  int64_t column[kVectors];
  bool active[kVectors];

  __device__ __forceinline__ void load(const FinishParams& p, int64_t token, int threads) {
    const T* in = static_cast<const T*>(p.residual.data) + token * p.residual.token;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      column[v] = static_cast<int64_t>(threadIdx.x + v * threads) * kWidth;
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

template <typename T, int kVectors>
__global__ void __launch_bounds__(kVectors == 1 ? 1024 : 512, kVectors == 2 ? 2 : 1)
    finish_kernel(const __grid_constant__ FinishParams p) {
  constexpr int kWidth = Vec<T>::kWidth;
  __shared__ float groups[kMostGroups][32];
  __shared__ float slots[32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool from_logits = p.mode == kFinishSite || p.mode == kFinishHead;
  const int collapse_warps = static_cast<int>(blockDim.x) / 32 - (from_logits ? 1 : 0);
  const int64_t token = blockIdx.x;
  Collapse<T, kVectors> work;
  allow_dependents();
  if (p.residual_ready != 0) work.load(p, token, collapse_warps * 32);
  wait_for_grids();
  if (p.residual_ready == 0) work.load(p, token, collapse_warps * 32);
  float logit = 0;
  if (from_logits) {
    const int group = p.mode == kFinishHead || lane < 4 ? 0 : lane < 8 ? 1 : 2;
    const bool used = lane < p.logits;
    const float base = used ? p.base.data[lane * p.base.stride[0]] : 0.0f;
    const float scale = used ? p.scale.data[group * p.scale.stride[0]] : 0.0f;
    logit = site_logit(p, collect_partials(p, token, groups), scale, base);
  }
  if (from_logits && warp == collapse_warps) {
    write_site(p, token, logit);
    return;
  }
  // With one step a thread there is one token a multiprocessor and nothing else to hide this load behind.
  constexpr bool kEarlyNorm = kVectors == 1;
  float norm[kWidth];
  if (kEarlyNorm && p.norm != 0 && work.active[0]) load_norm_weight<kWidth>(p, work.column[0], norm);
  float weight[4];
  site_weights(p, token, logit, weight);
  uint4 rounded[kVectors];
  float square = work.collapse(p, weight, rounded);
  float rstd = 0;
  if (p.norm != 0) {
    square = warps_sum(square, slots, collapse_warps, 1);
    rstd = inverse_root(square / static_cast<float>(p.hidden) + p.norm_eps);
  }
  T* out = static_cast<T*>(p.layer_input.data) + token * p.layer_input.token;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (!work.active[v]) continue;
    if (p.norm != 0) {
      float y[kWidth];
      Vec<T>::unpack(rounded[v], y);
      if (!kEarlyNorm) load_norm_weight<kWidth>(p, work.column[v], norm);
#pragma unroll
      for (int c = 0; c < kWidth; ++c) y[c] = y[c] * rstd * norm[c];
      rounded[v] = Vec<T>::pack(y);
    }
    *reinterpret_cast<uint4*>(out + work.column[v]) = rounded[v];
  }
}

}  // namespace fmhc::cuda
