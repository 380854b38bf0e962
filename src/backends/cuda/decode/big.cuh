// 9 to 64 tokens a group: tensor cores, fn as tf32 high and low parts (the streams are exact in tf32, so a
// product keeps 22 bits of fn). Eight warps hold the streams and multiply, one makes the mix, one pre. fn
// goes to shared memory in the order of the B fragments; K is split over the warps and summed through shared
// memory in ascending order.
#pragma once

#include "backends/cuda/decode/coefficients.cuh"
#include "backends/cuda/decode/lanes.cuh"
#include "backends/cuda/decode/small.cuh"

namespace fmhc::cuda::decode {

template <class G>
struct BigLayout {
  static constexpr int kUnitCount = 4 * G::kUnits;  // 16-column units of fn
  static constexpr int kUnitBytes = 24 * 16 * 4;
  static constexpr int kRows = G::kTokens <= 8 ? 8 : G::kTokens <= 16 ? 16 : G::kTokens <= 32 ? 32 : 64;
  static constexpr int kRowTiles = (kRows + 15) / 16;
  static constexpr int kTilesAWarp = kRowTiles > 1 ? 2 : 1;
  static constexpr int kParts = kWeightWarps * kTilesAWarp / kRowTiles;  // K parts
  static constexpr int kUnitsAWarp = (kUnitCount + kParts - 1) / kParts;
  static constexpr int kPairsAThread = (G::kTokens * G::kLanesAToken + 255) / 256;
  static constexpr int kPartFloats =
      G::kNorm ? 52 : 36;  // of a token: logits as quads of three, then the moments
  static constexpr int kRecords = kLogitKinds + G::kGram;
  static constexpr int kRecordsAThread = (G::kTokens * kRecords + 255) / 256;
  static constexpr int kTokenBytes = 4 * G::kColumns * 2 + 32;  // padded against bank conflicts
  static constexpr int kThreads = 32 * (kWeightWarps + 2);
  static constexpr int kStreamsOffset = kUnitCount * kUnitBytes;
  static constexpr int kPartsOffset = kStreamsOffset + kRows * kTokenBytes;
  static constexpr int kMixInOffset = kPartsOffset + kParts * kRows * kPartFloats * 4;
  static constexpr int kRowsOffset = kMixInOffset + (G::kSeam ? G::kTokens * 80 : 0);
  static constexpr int kGenerationOffset = kRowsOffset + kCollectRows * kRowFloats * 4;
  static constexpr int kBytes = kGenerationOffset + 16;
  static constexpr int kMinBlocks = G::kTokens <= 16 && G::kUnits <= 4 ? 2 : 1;
  static constexpr int kMixPieces = (G::kTokens * 5 + 255) / 256;
};

__device__ __forceinline__ void mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void copy_async_or_zero(void* shared, const void* global, bool valid) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(address), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
}

// fn as [unit of 16 columns][24 rows][16]: a 16-byte chunk is what a lane needs of B for two steps.
template <class G>
__device__ __forceinline__ void copy_weights(const Params& params, const Place& place, char* shared) {
  using L = BigLayout<G>;
  constexpr int kChunks = 4 * G::kUnits;
  constexpr int kAll = 96 * kChunks;
#pragma unroll
  for (int i = 0; i < (kAll + 255) / 256; ++i) {
    const int index = static_cast<int>(threadIdx.x) + 256 * i;
    const int line = index / kChunks;
    const int chunk = index % kChunks;
    const int row = line >> 2;
    const int stream = line & 3;
    const int column = place.slice * G::kColumns + chunk * 4;
    const bool valid = column < G::kHidden;
    if (kAll % 256 != 0 && index >= kAll) break;
    char* target = shared + (stream * G::kUnits + (chunk >> 2)) * L::kUnitBytes + row * 64 + (chunk & 3) * 16;
    copy_async_or_zero(
        target, params.fn + (valid ? int64_t{row} * G::kFlat + stream * G::kHidden + column : 0), valid);
  }
}

// A (token, granule) that a thread keeps from the first read to the collapse.
template <class G>
struct Pair {
  int token, granule, column;
  bool valid;

  __device__ __forceinline__ Pair(const Place& place, int index) {
    const int pair = static_cast<int>(threadIdx.x) + 256 * index;
    token = pair / G::kLanesAToken;
    granule = pair % G::kLanesAToken;
    column = place.slice * G::kColumns + granule * 8;
    valid = token < place.tokens && granule < G::kGranules && column < G::kHidden;
  }
};

// The partial logits of this warp's row tiles over its K part, to shared memory.
template <class G>
__device__ __forceinline__ void multiply(char* shared) {
  using L = BigLayout<G>;
  const int lane = static_cast<int>(threadIdx.x & 31);
  const int warp = static_cast<int>(threadIdx.x >> 5);
  const int tile = warp / L::kParts * L::kTilesAWarp;
  const int part = warp % L::kParts;
  const char* weights = shared + part * L::kUnitBytes + lane * 16;
  const char* rows =
      shared + L::kStreamsOffset + (tile * 16 + (lane >> 2)) * L::kTokenBytes + (lane & 3) * 8 + part * 32;
  float high[L::kTilesAWarp][3][4] = {}, low[L::kTilesAWarp][3][4] = {};
#pragma unroll
  for (int i = 0; i < L::kUnitsAWarp; ++i) {
    if (part + L::kParts * i >= L::kUnitCount) break;
    float4 b[3];
    uint2 top[L::kTilesAWarp], bottom[L::kTilesAWarp];
#pragma unroll
    for (int n = 0; n < 3; ++n) {
      b[n] = *reinterpret_cast<const float4*>(weights + i * L::kParts * L::kUnitBytes + n * 512);
    }
#pragma unroll
    for (int t = 0; t < L::kTilesAWarp; ++t) {
      const char* row = rows + t * 16 * L::kTokenBytes + i * L::kParts * 32;
      top[t] = *reinterpret_cast<const uint2*>(row);
      bottom[t] = {0, 0};
      if (L::kRows > 8) bottom[t] = *reinterpret_cast<const uint2*>(row + 8 * L::kTokenBytes);
    }
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int n = 0; n < 3; ++n) {
        const float b0 = step != 0 ? b[n].z : b[n].x;
        const float b1 = step != 0 ? b[n].w : b[n].y;
        const uint32_t h0 = __float_as_uint(b0) & 0xffffe000u;
        const uint32_t h1 = __float_as_uint(b1) & 0xffffe000u;
#pragma unroll
        for (int t = 0; t < L::kTilesAWarp; ++t) {
          const uint32_t x = step != 0 ? top[t].y : top[t].x;
          const uint32_t y = step != 0 ? bottom[t].y : bottom[t].x;
          const uint32_t a[4] = {x << 16, y << 16, x & 0xffff0000u, y & 0xffff0000u};
          mma_tf32(high[t][n], a, h0, h1);
          mma_tf32(low[t][n], a, __float_as_uint(b0 - __uint_as_float(h0)),
                   __float_as_uint(b1 - __uint_as_float(h1)));
        }
      }
    }
  }
  auto* parts = reinterpret_cast<float*>(shared + L::kPartsOffset);
#pragma unroll
  for (int t = 0; t < L::kTilesAWarp; ++t) {
    float* row = parts + (part * L::kRows + tile * 16 + t * 16 + (lane >> 2)) * L::kPartFloats;
#pragma unroll
    for (int n = 0; n < 6; ++n) {
      const int logit = (n >> 1) * 8 + (lane & 3) * 2 + (n & 1);
      float* place = row + logit / 3 * 4 + logit % 3;
      *place = high[t][n >> 1][n & 1] + low[t][n >> 1][n & 1];
      if (L::kRows > 8)
        place[8 * L::kPartFloats] = high[t][n >> 1][2 + (n & 1)] + low[t][n >> 1][2 + (n & 1)];
    }
  }
}

// Sums the K parts of every record and publishes it.
template <class G>
__device__ __forceinline__ void publish(const Place& place, const State& state, uint32_t generation,
                                        const char* shared) {
  using L = BigLayout<G>;
  const auto* parts = reinterpret_cast<const float*>(shared + L::kPartsOffset);
#pragma unroll
  for (int i = 0; i < L::kRecordsAThread; ++i) {
    const int index = static_cast<int>(threadIdx.x) + 256 * i;
    const int beyond = index - kLogitKinds * place.tokens;
    const int token = beyond < 0 ? index / kLogitKinds : beyond / G::kGram;
    if (token >= place.tokens) continue;
    const int kind = beyond < 0 ? index % kLogitKinds : kLogitKinds + beyond % G::kGram;
    const float* quad = parts + token * L::kPartFloats + kind * 4;
    float4 sum = *reinterpret_cast<const float4*>(quad);
#pragma unroll
    for (int part = 1; part < L::kParts; ++part) {
      const float4 more = *reinterpret_cast<const float4*>(quad + part * L::kRows * L::kPartFloats);
      sum.x += more.x;
      sum.y += more.y;
      sum.z += more.z;
    }
    store_record(state.record(place.first_token + token, place.slice, kind), sum.x, sum.y, sum.z, generation);
  }
}

// Moments of a token's granules, folded until lane g holds the share of K part g, then to shared memory.
template <class G>
__device__ __forceinline__ void park_moments(const uint4 (&streams)[4], const Pair<G>& pair,
                                             const Place& place, char* shared) {
  using L = BigLayout<G>;
  float moments[12];
  moments_of<G::kNorm>(streams, moments);
#pragma unroll
  for (int offset = L::kParts; offset < G::kLanesAToken; offset *= 2) {
#pragma unroll
    for (int value = 0; value < (G::kNorm ? 11 : 1); ++value) {
      moments[value] += __shfl_xor_sync(kAllLanes, moments[value], offset);
    }
  }
  if (pair.token >= place.tokens) return;
  auto* parts = reinterpret_cast<float*>(shared + L::kPartsOffset);
#pragma unroll
  for (int first = 0; first < L::kParts; first += G::kLanesAToken) {
    if (first + pair.granule >= L::kParts) continue;
    float* row = parts + ((first + pair.granule) * L::kRows + pair.token) * L::kPartFloats + 4 * kLogitKinds;
#pragma unroll
    for (int kind = 0; kind < G::kGram; ++kind) {
      float4 quad = {0, 0, 0, 0};
      if (first == 0)
        quad = {moments[3 * kind], moments[3 * kind + 1], kind < 3 ? moments[3 * kind + 2] : 0.0f, 0.0f};
      *reinterpret_cast<float4*>(row + 4 * kind) = quad;
    }
  }
}

template <class G>
__device__ __forceinline__ void load_streams(const Params& params, const Place& place, const Pair<G>& pair,
                                             uint4 (&streams)[4], uint4& sublayer) {
  const int64_t token = place.first_token + pair.token;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    streams[j] = {0, 0, 0, 0};
    if (pair.valid) {
      streams[j] = load_stream(static_cast<const DeviceBf16*>(params.residual) +
                               (token * 4 + j) * G::kHidden + pair.column);
    }
  }
  sublayer = {0, 0, 0, 0};
  if (G::kSeam && pair.valid) {
    sublayer = load_stream(static_cast<const DeviceBf16*>(params.sublayer_output) + token * G::kHidden +
                           pair.column);
  }
}

// Post where there is one; the streams to shared memory and the new residual to memory.
template <class G>
__device__ __forceinline__ void hand_over(const Params& params, const Place& place, const Pair<G>& pair,
                                          uint4 (&streams)[4], const uint4& sublayer, const float* mix,
                                          char* shared) {
  using L = BigLayout<G>;
  if (pair.token >= place.tokens || pair.granule >= G::kGranules) return;
  if (G::kSeam) post_granule(streams, sublayer, mix + pair.token * 20);
  const int64_t token = place.first_token + pair.token;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    *reinterpret_cast<uint4*>(shared + L::kStreamsOffset + pair.token * L::kTokenBytes +
                              (j * G::kColumns + pair.granule * 8) * 2) = streams[j];
    if (G::kSeam && pair.valid) {
      auto* out = static_cast<DeviceBf16*>(params.residual_out) + (token * 4 + j) * G::kHidden + pair.column;
      *reinterpret_cast<uint4*>(out) = streams[j];
    }
  }
}

template <class G>
__device__ __forceinline__ void worker_warps(const Params& params, const Place& place, const State& state,
                                             char* shared) {
  using L = BigLayout<G>;
  auto* mix = reinterpret_cast<float*>(shared + L::kMixInOffset);
  const int thread = static_cast<int>(threadIdx.x);
  // L1 returns loads in order: without early weights the small reads of the streams go first.
  if (params.weights_first != 0) copy_weights<G>(params, place, shared);
  allow_dependents();
  wait_for_grids();
  uint4 streams[L::kPairsAThread][4], sublayer[L::kPairsAThread];
  float4 piece[L::kMixPieces];
  if (G::kSeam) {
#pragma unroll
    for (int i = 0; i < L::kMixPieces; ++i) {
      if (thread + 256 * i < 5 * place.tokens)
        piece[i] = load_mix_piece(params, place.first_token, thread + 256 * i);
    }
  }
#pragma unroll
  for (int i = 0; i < L::kPairsAThread; ++i) {
    load_streams<G>(params, place, Pair<G>(place, i), streams[i], sublayer[i]);
  }
  if (params.weights_first == 0) copy_weights<G>(params, place, shared);
  if (G::kSeam) {
#pragma unroll
    for (int i = 0; i < L::kMixPieces; ++i) {
      if (thread + 256 * i < 5 * place.tokens)
        *reinterpret_cast<float4*>(mix + (thread + 256 * i) * 4) = piece[i];
    }
    named_barrier(kMixInReady, kWeightWarps * 32);
  }
#pragma unroll
  for (int i = 0; i < L::kPairsAThread; ++i) {
    const Pair<G> pair(place, i);
    hand_over<G>(params, place, pair, streams[i], sublayer[i], mix, shared);
    park_moments<G>(streams[i], pair, place, shared);
  }
  wait_for_copies();
  named_barrier(kStreamsReady, kOwnerThreads);
  multiply<G>(shared);
  const uint32_t generation = *reinterpret_cast<const uint32_t*>(shared + L::kGenerationOffset);
  named_barrier(kPartsReady, kWeightWarps * 32);
  publish<G>(place, state, generation, shared);
  collect_owned<G>(place, state, generation, reinterpret_cast<float*>(shared + L::kRowsOffset));
#pragma unroll
  for (int i = 0; i < L::kPairsAThread; ++i) {
    const Pair<G> pair(place, i);
    finish_granules<G>(params, place, state, generation, streams[i], pair.token, pair.granule, pair.valid);
  }
  if (threadIdx.x < 32) close_launch<G>(state, place, generation, params.tokens);
}

template <class G>
__global__ void __launch_bounds__(BigLayout<G>::kThreads, BigLayout<G>::kMinBlocks)
    big_kernel(const __grid_constant__ Params params) {
  using L = BigLayout<G>;
  extern __shared__ __align__(128) char shared[];
  const int warp = static_cast<int>(threadIdx.x >> 5);
  const Place place = place_of<G>(params);
  const State state(params.state);
  const float* rows = reinterpret_cast<const float*>(shared + L::kRowsOffset);
  if (warp < kWeightWarps) {
    worker_warps<G>(params, place, state, shared);
    return;
  }
  allow_dependents();
  wait_for_grids();
  if (warp == kWeightWarps) {
    finish_mix<G>(params, place, rows);
    return;
  }
  const uint32_t generation = read_generation(state, place.cta);
  if ((threadIdx.x & 31) == 0) *reinterpret_cast<uint32_t*>(shared + L::kGenerationOffset) = generation;
  __syncwarp();
  arrive(kStreamsReady, kOwnerThreads);
  finish_pre<G>(params, place, state, generation, rows);
}

}  // namespace fmhc::cuda::decode
