// Up to 16 tokens a group: fp32 FMA. Eight weight warps hold three rows of fn each over the whole slice in
// registers, so that a warp ends with the three logits of one record; one warp makes the mix, one pre; the
// others hold the streams (post, square sums, later the collapse) and hand them over in shared memory.
#pragma once

#include "backends/cuda/decode/coefficients.cuh"
#include "backends/cuda/decode/lanes.cuh"

namespace fmhc::cuda::decode {

inline constexpr int kWeightWarps = kCollectWarps;

template <class G>
struct SmallLayout {
  static constexpr int kChunks = 4 * G::kUnits;                 // 16-byte chunks of fn in a (row, stream)
  static constexpr int kChunksALane = (4 * kChunks + 31) / 32;  // of a row
  static constexpr int kStreamWarps = (G::kTokens * G::kLanesAToken + 31) / 32;
  static constexpr int kThreads = 32 * (kWeightWarps + 2 + kStreamWarps);
  static constexpr bool kDirect =
      !G::kSeam && G::kTokens <= 2;  // the weight warps read the streams themselves
  static constexpr int kTokenBytes = 4 * G::kColumns * 2;
  static constexpr int kRowsOffset = G::kTokens * kTokenBytes;
  static constexpr int kGenerationOffset = kRowsOffset + kCollectRows * kRowFloats * 4;
  static constexpr int kMixInOffset = kGenerationOffset + 64;
  static constexpr int kBytes = kMixInOffset + kStreamWarps * G::kTokens * 80;
  static constexpr int kMinBlocks = G::kTokens * kChunksALane <= 16 && kChunksALane <= 2 ? 2 : 1;
  static constexpr int kStreamsReadyThreads = 32 * (kWeightWarps + 1 + kStreamWarps);
  static constexpr int kReadsIssuedThreads = 32 * (kWeightWarps + kStreamWarps);
  static_assert(G::kTokens <= 16 && kStreamWarps <= 8);
};

__device__ __forceinline__ float4 load_weights(const float* address) {
  float4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "l"(address)
               : "memory");
  return value;
}

// post and comb of the group's tokens: five 16-byte pieces a token.
__device__ __forceinline__ float4 load_mix_piece(const Params& params, int64_t first_token, int piece) {
  const int64_t token = first_token + piece / 5;
  const int part = piece % 5;
  const float* address =
      part == 0 ? params.post_in + token * 4 : params.comb_in + token * 16 + 4 * (part - 1);
  return __ldcg(reinterpret_cast<const float4*>(address));
}

// One butterfly step of the reduction over lanes that also halves the tokens a lane holds.
template <int kTokens, int kOffset>
__device__ __forceinline__ void fold(float (*sums)[3], int lane) {
  if constexpr (kTokens > 1) {
    const bool upper = (lane & kOffset) != 0;
#pragma unroll
    for (int token = 0; token < kTokens / 2; ++token) {
#pragma unroll
      for (int value = 0; value < 3; ++value) {
        const float give = upper ? sums[token][value] : sums[token + kTokens / 2][value];
        const float keep = upper ? sums[token + kTokens / 2][value] : sums[token][value];
        sums[token][value] = keep + __shfl_xor_sync(kAllLanes, give, kOffset);
      }
    }
    fold<kTokens / 2, kOffset / 2>(sums, lane);
  }
}

template <class G>
__device__ __forceinline__ void stream_warp(const Params& params, const Place& place, const State& state,
                                            char* shared) {
  using L = SmallLayout<G>;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int warp = static_cast<int>(threadIdx.x >> 5) - kWeightWarps - 2;
  const int pair = warp * 32 + lane;
  const int token = pair / G::kLanesAToken;
  const int granule = pair % G::kLanesAToken;
  const int column = place.slice * G::kColumns + granule * 8;
  const bool valid = token < place.tokens && granule < G::kGranules && column < G::kHidden;
  const int64_t global = place.first_token + token;
  auto* generations = reinterpret_cast<uint32_t*>(shared + L::kGenerationOffset);
  float* mix = reinterpret_cast<float*>(shared + L::kMixInOffset) + warp * G::kTokens * 20;
  constexpr int kPieces = (G::kTokens * 5 + 31) / 32;
  uint4 streams[4], sublayer = {0, 0, 0, 0};
  float4 piece[kPieces];
  if (G::kSeam) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      if (lane + 32 * i < 5 * place.tokens)
        piece[i] = load_mix_piece(params, place.first_token, lane + 32 * i);
    }
    if (valid) {
      sublayer =
          load_stream(static_cast<const DeviceBf16*>(params.sublayer_output) + global * G::kHidden + column);
    }
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    streams[j] = {0, 0, 0, 0};
    if (valid) {
      streams[j] = load_stream(static_cast<const DeviceBf16*>(params.residual) +
                               (global * 4 + j) * G::kHidden + column);
    }
  }
  const uint32_t generation = read_generation(state, place.cta);
  if (!L::kDirect && params.weights_first == 0) arrive(kReadsIssued, L::kReadsIssuedThreads);
  if (G::kSeam) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      if (lane + 32 * i < 5 * place.tokens) *reinterpret_cast<float4*>(mix + (lane + 32 * i) * 4) = piece[i];
    }
    __syncwarp();
    if (valid) post_granule(streams, sublayer, mix + token * 20);
  }
  if (!L::kDirect && token < place.tokens && granule < G::kGranules) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      *reinterpret_cast<uint4*>(shared + token * L::kTokenBytes + (j * G::kColumns + granule * 8) * 2) =
          streams[j];
    }
  }
  // The store makes sure that the word is read before this CTA can go on to advance it.
  if (lane == 0) generations[warp] = generation;
  __syncwarp();
  arrive(kStreamsReady, L::kStreamsReadyThreads);
  if (G::kSeam && valid) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      auto* out = static_cast<DeviceBf16*>(params.residual_out) + (global * 4 + j) * G::kHidden + column;
      *reinterpret_cast<uint4*>(out) = streams[j];
    }
  }
  float moments[12];
  moments_of<G::kNorm>(streams, moments);
#pragma unroll
  for (int value = 0; value < (G::kNorm ? 11 : 1); ++value)
    moments[value] = group_sum<G::kLanesAToken>(moments[value]);
  if (token < place.tokens && granule < G::kGram) {
    float record[3] = {0, 0, 0};
#pragma unroll
    for (int value = 0; value < 12; ++value) {
      if (value / 3 == granule) record[value % 3] = moments[value];
    }
    store_record(state.record(static_cast<int>(global), place.slice, kLogitKinds + granule), record[0],
                 record[1], record[2], generation);
  }
  finish_granules<G>(params, place, state, generation, streams, token, granule, valid);
}

// Three rows of fn a warp; a lane holds the chunks lane + 32 i of the slice: stream chunk / kChunks.
template <class G>
__device__ __forceinline__ void weight_warp(const Params& params, const Place& place, const State& state,
                                            char* shared) {
  using L = SmallLayout<G>;
  constexpr int kTokens = G::kTokens;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int warp = static_cast<int>(threadIdx.x >> 5);
  float4 weight[3][L::kChunksALane];
  uint2 streams[kTokens][L::kChunksALane];
  const auto load_rows = [&] {
#pragma unroll
    for (int i = 0; i < L::kChunksALane; ++i) {
      const int chunk = lane + 32 * i;
      const int stream = chunk / L::kChunks;
      const int column = place.slice * G::kColumns + chunk % L::kChunks * 4;
      const float* address = params.fn + int64_t{3} * warp * G::kFlat + stream * G::kHidden + column;
#pragma unroll
      for (int row = 0; row < 3; ++row) {
        weight[row][i] = {0, 0, 0, 0};
        if (stream < 4 && column < G::kHidden)
          weight[row][i] = load_weights(address + int64_t{row} * G::kFlat);
      }
    }
  };
  if (params.weights_first != 0) load_rows();
  allow_dependents();
  wait_for_grids();
  if (L::kDirect) {
#pragma unroll
    for (int i = 0; i < L::kChunksALane; ++i) {
      const int chunk = lane + 32 * i;
      const int stream = chunk / L::kChunks;
      const int column = place.slice * G::kColumns + chunk % L::kChunks * 4;
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        streams[token][i] = {0, 0};
        if (token < place.tokens && stream < 4 && column < G::kHidden) {
          const int64_t row = (place.first_token + token) * int64_t{4} + stream;
          streams[token][i] = __ldcg(reinterpret_cast<const uint2*>(
              static_cast<const DeviceBf16*>(params.residual) + row * G::kHidden + column));
        }
      }
    }
  }
  if (params.weights_first == 0) {
    // L1 returns loads in order: the small reads of the streams go first, or they queue behind fn from
    // memory.
    if (!L::kDirect) named_barrier(kReadsIssued, L::kReadsIssuedThreads);
    load_rows();
  }
  if (!L::kDirect) named_barrier(kStreamsReady, L::kStreamsReadyThreads);
  float sums[kTokens][3];
#pragma unroll
  for (int token = 0; token < kTokens; ++token) {
#pragma unroll
    for (int row = 0; row < 3; ++row) sums[token][row] = 0;
#pragma unroll
    for (int i = 0; i < L::kChunksALane; ++i) {
      if (!L::kDirect) {
        const int chunk = min(lane + 32 * i, 4 * L::kChunks - 1);
        const int place_in_token = (chunk / L::kChunks * G::kColumns + chunk % L::kChunks * 4) * 2;
        streams[token][i] = {0, 0};
        if (token < place.tokens) {
          streams[token][i] =
              *reinterpret_cast<const uint2*>(shared + token * L::kTokenBytes + place_in_token);
        }
      }
      const float2 low = unpack_pair(streams[token][i].x, DeviceBf16{});
      const float2 high = unpack_pair(streams[token][i].y, DeviceBf16{});
#pragma unroll
      for (int row = 0; row < 3; ++row) {
        const float4 w = weight[row][i];
        sums[token][row] =
            fmaf(w.w, high.y, fmaf(w.z, high.x, fmaf(w.y, low.y, fmaf(w.x, low.x, sums[token][row]))));
      }
    }
  }
  fold<kTokens, 16>(sums, lane);
#pragma unroll
  for (int offset = 16 / kTokens; offset > 0; offset /= 2) {
#pragma unroll
    for (int row = 0; row < 3; ++row) sums[0][row] += __shfl_xor_sync(kAllLanes, sums[0][row], offset);
  }
  if (L::kDirect) named_barrier(kStreamsReady, L::kStreamsReadyThreads);
  const uint32_t generation = *reinterpret_cast<const uint32_t*>(shared + L::kGenerationOffset);
  const int token = lane / (32 / kTokens);
  if (lane % (32 / kTokens) == 0 && token < place.tokens) {
    store_record(state.record(place.first_token + token, place.slice, warp), sums[0][0], sums[0][1],
                 sums[0][2], generation);
  }
  collect_owned<G>(place, state, generation, reinterpret_cast<float*>(shared + L::kRowsOffset));
  if (warp == kWeightWarps - 1) {
    close_launch<G>(state, place, generation, params.tokens);
  }
}

template <class G>
__global__ void __launch_bounds__(SmallLayout<G>::kThreads, SmallLayout<G>::kMinBlocks)
    small_kernel(const __grid_constant__ Params params) {
  using L = SmallLayout<G>;
  extern __shared__ __align__(128) char shared[];
  const int warp = static_cast<int>(threadIdx.x >> 5);
  const Place place = place_of<G>(params);
  const State state(params.state);
  const float* rows = reinterpret_cast<const float*>(shared + L::kRowsOffset);
  if (warp < kWeightWarps) {
    weight_warp<G>(params, place, state, shared);
    return;
  }
  allow_dependents();
  wait_for_grids();
  if (warp == kWeightWarps) {
    finish_mix<G>(params, place, rows);
  } else if (warp == kWeightWarps + 1) {
    const uint32_t generation = read_generation(state, place.cta);
    auto* generations = reinterpret_cast<uint32_t*>(shared + L::kGenerationOffset);
    if ((threadIdx.x & 31) == 0) generations[15] = generation;
    __syncwarp();
    arrive(kStreamsReady, L::kStreamsReadyThreads);
    finish_pre<G>(params, place, state, generation, rows);
  } else {
    stream_warp<G>(params, place, state, shared);
  }
}

}  // namespace fmhc::cuda::decode
