// From the records of all slices to the coefficients of a token. Two CTAs own a token: one makes post and
// comb, another one pre, so that Sinkhorn runs beside the broadcast that the collapse waits for.
#pragma once

#include "backends/cuda/common/math.cuh"
#include "backends/cuda/common/reduce.cuh"
#include "backends/cuda/decode/exchange.cuh"
#include "backends/cuda/decode/geometry.cuh"
#include "backends/cuda/decode/lanes.cuh"
#include "backends/cuda/decode/params.h"

namespace fmhc::cuda::decode {

// Shared memory of the collection: a row of 32 partial sums (padded) for each value. The mix owner's rows
// come first: square sum and two Gram values, then logits 3..23; the pre owner's: logits 0..5, square sum,
// Gram matrix.
inline constexpr int kRowFloats = 36;
inline constexpr int kPreRows = 24;
inline constexpr int kCollectRows = 42;
inline constexpr int kSquareRow = kPreRows + 6;
inline constexpr int kCollectWarps = 8;

enum Barrier : int {
  kStreamsReady = 1,
  kPartsReady = 2,
  kMixReady = 3,
  kPreReady = 4,
  kMixInReady = 5,
  kReadsIssued = 6
};
inline constexpr int kOwnerThreads = kCollectWarps * 32 + 32;

__device__ __forceinline__ void arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Eight warps: lane = (value of a record's kind, part of the slices). Each sums its slices in ascending
// order.
template <class G, bool kForPre>
__device__ __forceinline__ void collect(const State& state, int token, uint32_t generation, float* rows) {
  constexpr int kUsed = kForPre ? 2 + G::kGram : 8;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int index = lane & 7;
  const int part = static_cast<int>(threadIdx.x >> 5) * 4 + (lane >> 3);
  const int kind =
      kForPre ? (index < 2 ? index : kLogitKinds + index - 2) : (index == 0 ? kLogitKinds : index);
  const bool used = index < kUsed;
  Record record[G::kSlicesALane];
#pragma unroll
  for (int k = 0; k < G::kSlicesALane; ++k) {
    record[k] = {{0, 0, 0}, used && part + 32 * k < G::kSlices ? ~generation : generation};
  }
  bool complete;
  Spin spin;
  do {
    complete = true;
#pragma unroll
    for (int k = 0; k < G::kSlicesALane; ++k) {
      if (record[k].generation != generation)
        record[k] = load_record(state.record(token, part + 32 * k, kind));
    }
#pragma unroll
    for (int k = 0; k < G::kSlicesALane; ++k) complete &= record[k].generation == generation;
    spin.step();
  } while (!complete);
  if (!used) return;
  float* row = rows + ((kForPre ? kPreRows : 0) + 3 * index) * kRowFloats + part;
#pragma unroll
  for (int value = 0; value < 3; ++value) {
    float sum = record[0].value[value];
#pragma unroll
    for (int k = 1; k < G::kSlicesALane; ++k) sum += record[k].value[value];
    row[value * kRowFloats] = sum;
  }
}

template <class G>
__device__ __forceinline__ void collect_owned(const Place& place, const State& state, uint32_t generation,
                                              float* rows) {
  if (place.owns_mix) {
    collect<G, false>(state, place.first_token + place.slice, generation, rows);
    __syncwarp();
    arrive(kMixReady, kOwnerThreads);
  }
  if (place.owns_pre) {
    collect<G, true>(state, place.first_token + place.pre_token, generation, rows);
    __syncwarp();
    arrive(kPreReady, kOwnerThreads);
  }
}

__device__ __forceinline__ float sum_row(const float* row) {
  float sum[4] = {0, 0, 0, 0};
#pragma unroll
  for (int index = 0; index < 8; ++index) {
    const float4 part = *reinterpret_cast<const float4*>(row + 4 * index);
    sum[0] += part.x;
    sum[1] += part.y;
    sum[2] += part.z;
    sum[3] += part.w;
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// The mix warp. Lanes 0..3: post; 4..19: comb, row-major.
template <class G>
__device__ __forceinline__ void finish_mix(const Params& params, const Place& place, const float* rows) {
  if (!place.owns_mix) return;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const float base = lane < 20 ? params.base[4 + lane] : 0.0f;
  const float scale = params.scale[lane < 4 ? 1 : 2];
  named_barrier(kMixReady, kOwnerThreads);
  const float sum = sum_row(rows + (lane < 20 ? 4 + lane : 0) * kRowFloats);
  const float square = __shfl_sync(kAllLanes, sum, 20);
  const float rstd = inverse_root(fmaf(square, 1.0f / G::kFlat, params.rms_eps));
  const float logit = logit_of(sum, rstd, scale, base);
  float most = fmaxf(logit, __shfl_xor_sync(kAllLanes, logit, 1));
  most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
  const float exponential = expf(lane < 4 ? -logit : logit - most);
  const int64_t token = place.first_token + place.slice;
  if (lane < 4) params.post_mix[token * 4 + lane] = params.post_mult * reciprocal(1.0f + exponential);
  float e[4][4];
#pragma unroll
  for (int index = 0; index < 16; ++index)
    e[index / 4][index % 4] = __shfl_sync(kAllLanes, exponential, 4 + index);
  float row[4], column[4];
  scaling_vectors(e, params.iterations, params.sinkhorn_eps, row, column);
  const int j = (lane - 4) >> 2;
  const int k = lane & 3;
  float mine = 0, my_row = 1, my_column = 1;
#pragma unroll
  for (int index = 0; index < 16; ++index) mine = index == lane - 4 ? e[index / 4][index % 4] : mine;
#pragma unroll
  for (int index = 0; index < 4; ++index) {
    my_row = index == j ? row[index] : my_row;
    my_column = index == k ? column[index] : my_column;
  }
  mine *= reciprocal(my_row) * reciprocal(my_column);
  if (lane >= 4 && lane < 20) params.comb_mix[token * 16 + lane - 4] = mine;
}

// |y|^2 = pre^T G pre, and the same sum of magnitudes, which says how much cancels.
__device__ __forceinline__ void gram_form(const float (&pre)[4], const float (&gram)[10], float* form,
                                          float* magnitude) {
  float square = 0, cross = 0, cross_magnitude = 0;
  int place = 0;
#pragma unroll
  for (int diagonal = 0; diagonal < 4; ++diagonal) {
#pragma unroll
    for (int j = 0; j + diagonal < 4; ++j, ++place) {
      const float term = pre[j] * pre[j + diagonal] * gram[place];
      if (diagonal == 0) {
        square += term;
      } else {
        cross += term;
        cross_magnitude += fabsf(term);
      }
    }
  }
  *form = fmaf(2.0f, cross, square);
  *magnitude = fmaf(2.0f, cross_magnitude, square);
}

// Below this share of the magnitudes the Gram form has lost eight bits: the token takes the exact way.
inline constexpr float kCancellation = 1.0f / 256;

// The pre warp: collapse weights and the norm's factor of one token, broadcast to every CTA of the group.
template <class G>
__device__ __forceinline__ void finish_pre(const Params& params, const Place& place, const State& state,
                                           uint32_t generation, const float* rows) {
  if (!place.owns_pre) return;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const float base = params.base[lane & 3];
  const float scale = params.scale[0];
  named_barrier(kPreReady, kOwnerThreads);
  // Lanes 0..3: logits; 4: square sum; 5..14: Gram matrix.
  const int row = lane < 4 ? kPreRows + lane : kSquareRow + min(lane - 4, G::kNorm ? 10 : 0);
  const float sum = sum_row(rows + row * kRowFloats);
  const float rstd = inverse_root(fmaf(__shfl_sync(kAllLanes, sum, 4), 1.0f / G::kFlat, params.rms_eps));
  const float mine = sigmoid(logit_of(sum, rstd, scale, base)) + params.pre_eps;
  float pre[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) pre[j] = __shfl_sync(kAllLanes, mine, j);
  float factor = 1;
  bool exact = false;
  if (G::kNorm) {
    float gram[10];
#pragma unroll
    for (int index = 0; index < 10; ++index) gram[index] = __shfl_sync(kAllLanes, sum, 5 + index);
    float form, magnitude;
    gram_form(pre, gram, &form, &magnitude);
    exact = params.rounded_norm != 0 || form < kCancellation * magnitude;
    factor = inverse_root(fmaf(form, 1.0f / G::kHidden, params.norm_eps));
  }
  const int token = place.first_token + place.pre_token;
  if (lane < 2 * kReplicas) {
    const bool second = (lane & 1) != 0;
    store_record(state.answer(lane >> 1, token, lane & 1), second ? pre[3] : pre[0], second ? factor : pre[1],
                 second ? (exact ? 1.0f : 0.0f) : pre[2], generation);
  }
  if (params.pre_mix != nullptr && lane < 4) params.pre_mix[int64_t{4} * token + lane] = mine;
  if (!G::kNorm) return;
  if (exact) {
    float squares = 0;
    for (int slice = lane; slice < G::kSlices; slice += 32) {
      squares += wait_record(state.record(token, slice, kExactKind), generation).value[0];
    }
    factor = inverse_root(fmaf(warp_sum(squares), 1.0f / G::kHidden, params.norm_eps));
  }
  if (lane < kReplicas) {
    store_record(state.answer(lane, token, 2), factor, 0, 0, exact ? generation : idle_tag(generation));
  }
}

// A warp collapses its granules and stores them. `token` is within the group; every lane calls, valid or not.
template <class G>
__device__ __forceinline__ void finish_granules(const Params& params, const Place& place, const State& state,
                                                uint32_t generation, const uint4 (&streams)[4], int token,
                                                int granule, bool valid) {
  const int column = place.slice * G::kColumns + granule * 8;
  const int64_t global = place.first_token + token;
  const int replica = place.slice & (kReplicas - 1);
  float weight[8], y[8];
  float factor = 1;
  bool exact = false;
  if (valid) {
    if (G::kNorm) load_norm_weight(params, column, weight);
    const Record first = wait_record(state.answer(replica, static_cast<int>(global), 0), generation);
    const Record second = wait_record(state.answer(replica, static_cast<int>(global), 1), generation);
    const float pre[4] = {first.value[0], first.value[1], first.value[2], second.value[0]};
    factor = second.value[1];
    exact = second.value[2] != 0;
    collapse_granule(streams, pre, y);
  }
  if (G::kNorm) {
    // The tokens of a warp may differ in the way they take; the lanes of a token do not.
    const bool any_exact = __any_sync(kAllLanes, exact);
    float squares = 0;
    if (valid) {
      if (params.rounded_norm != 0) round_granule(y);
#pragma unroll
      for (int index = 0; index < 8; ++index) squares = fmaf(y[index], y[index], squares);
      round_granule(y);
    }
    if (any_exact) squares = group_sum<G::kLanesAToken>(exact ? squares : 0.0f);
    if (token < place.tokens && granule == 0) {
      store_record(state.record(static_cast<int>(global), place.slice, kExactKind), squares, 0, 0,
                   exact ? generation : idle_tag(generation));
    }
    if (exact) factor = wait_record(state.answer(replica, static_cast<int>(global), 2), generation).value[0];
    if (valid) {
#pragma unroll
      for (int index = 0; index < 8; ++index) y[index] *= factor * weight[index];
    }
  }
  if (!valid) return;
  auto* out = static_cast<DeviceBf16*>(params.layer_input) + global * G::kHidden + column;
  *reinterpret_cast<uint4*>(out) = Vec<DeviceBf16>::pack(y);
}

}  // namespace fmhc::cuda::decode
