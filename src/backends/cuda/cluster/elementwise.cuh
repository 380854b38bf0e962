// The warps that walk the tile element by element: post rewrites the boxes in place, the collapse reads them.
// Four tokens a warp, eight lanes a token, 8 columns of every box a lane.
#pragma once

#include "backends/cuda/cluster/ptx.cuh"
#include "backends/cuda/cluster/tile.cuh"
#include "backends/cuda/common/math.cuh"
#include "backends/cuda/common/reduce.cuh"
#include "backends/cuda/common/storage.cuh"

namespace fmhc::cuda::cluster {

inline constexpr int kNormWeightReady = 7;  // named barrier of the collapse warps

// A lane's place in a box.
struct LanePlace {
  int token, chunk;
  uint32_t offset;  // of its 16 bytes in the first stream of a box, swizzled

  __device__ __forceinline__ LanePlace(int warp, int lane) {
    token = warp * 4 + (lane >> 3);
    chunk = lane & 7;
    offset = static_cast<uint32_t>(token * 128 + ((chunk ^ (token & 7)) << 4));
  }
};

// One word of each stream: the mix over the old streams in ascending order, then the sublayer's output.
__device__ __forceinline__ void post_words(uint4 (&streams)[4], const uint4& sublayer, const float4& post,
                                           const float4 (&comb)[4]) {
  auto* words = reinterpret_cast<uint32_t*>(streams);
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    const float2 z = unpack_pair(word_of(sublayer, word), DeviceBf16{});
    float2 r[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) r[j] = unpack_pair(words[4 * j + word], DeviceBf16{});
    const auto mixed = [&](float c0, float c1, float c2, float c3, float weight) {
      const float low = fmaf(c3, r[3].x, fmaf(c2, r[2].x, fmaf(c1, r[1].x, c0 * r[0].x)));
      const float high = fmaf(c3, r[3].y, fmaf(c2, r[2].y, fmaf(c1, r[1].y, c0 * r[0].y)));
      return pack_pair(fmaf(weight, z.x, low), fmaf(weight, z.y, high), DeviceBf16{});
    };
    words[word] = mixed(comb[0].x, comb[1].x, comb[2].x, comb[3].x, post.x);
    words[4 + word] = mixed(comb[0].y, comb[1].y, comb[2].y, comb[3].y, post.y);
    words[8 + word] = mixed(comb[0].z, comb[1].z, comb[2].z, comb[3].z, post.z);
    words[12 + word] = mixed(comb[0].w, comb[1].w, comb[2].w, comb[3].w, post.w);
  }
}

template <class G>
__device__ __forceinline__ void post_warp(const Params& params, const void* memory) {
  Context<G> at;
  at.derive(params, memory);
  cluster_wait();
  const LanePlace place(at.warp - 16, at.lane);
  Ring<G::kStages> ring{0, 0};
  for (int tile = 0; tile < at.tiles; ++tile, ring.step()) {
    wait_for(at.barrier(G::kFull, ring.stage * G::kBoxes), ring.parity);
    const uint32_t mix = at.shared + G::kMixInOffset + ring.stage * G::kMixInBytes;
    const float4 post = read_shared4f(mix + place.token * 16);
    float4 comb[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) comb[j] = read_shared4f(mix + kTokens * 16 + place.token * 64 + j * 16);
#pragma unroll 1
    for (int box = 0; box < G::kBoxes; ++box) {
      if (box > 0) wait_for(at.barrier(G::kFull, ring.stage * G::kBoxes + box), ring.parity);
      const uint32_t address = at.shared + ring.stage * G::kStageBytes + place.offset + box * G::kBoxBytes;
      const uint4 sublayer = read_shared4(at.shared + G::kSublayerOffset + ring.stage * G::kSublayerBytes +
                                          place.offset + box * G::kSublayerBoxBytes);
      uint4 streams[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) streams[j] = read_shared4(address + j * 2048);
      post_words(streams, sublayer, post, comb);
#pragma unroll
      for (int k = 0; k < 4; ++k) write_shared4(address + k * 2048, streams[k]);
      fence_for_copies();
      __syncwarp();
      if (at.lane == 0) arrive_at(at.barrier(G::kPosted, ring.stage * G::kBoxes + box));
    }
  }
}

// Collapses 8 columns; adds their square sum, of the rounded or the unrounded values.
template <bool kNorm, bool kRoundedNorm>
__device__ __forceinline__ uint4 collapse_words(const uint4 (&streams)[4], const float4& pre,
                                                float* squares) {
  uint4 out;
  auto* words = reinterpret_cast<uint32_t*>(&out);
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    float2 r = unpack_pair(word_of(streams[0], word), DeviceBf16{});
    float low = pre.x * r.x, high = pre.x * r.y;
    r = unpack_pair(word_of(streams[1], word), DeviceBf16{});
    low = fmaf(pre.y, r.x, low);
    high = fmaf(pre.y, r.y, high);
    r = unpack_pair(word_of(streams[2], word), DeviceBf16{});
    low = fmaf(pre.z, r.x, low);
    high = fmaf(pre.z, r.y, high);
    r = unpack_pair(word_of(streams[3], word), DeviceBf16{});
    low = fmaf(pre.w, r.x, low);
    high = fmaf(pre.w, r.y, high);
    words[word] = pack_pair(low, high, DeviceBf16{});
    if (kNorm) {
      if (kRoundedNorm) {
        const float2 rounded = unpack_pair(words[word], DeviceBf16{});
        low = rounded.x;
        high = rounded.y;
      }
      *squares = fmaf(high, high, fmaf(low, low, *squares));
    }
  }
  return out;
}

// The norm's second exchange: square sums of a tile over the cluster, after the stage is free again.
template <class G>
struct NormExchange {
  Ring<G::kNormSlots> ring;

  __device__ __forceinline__ float factor(const Params& params, const Context<G>& at, int warp,
                                          float squares) {
#pragma unroll
    for (int offset = 1; offset < 8; offset *= 2) squares += __shfl_xor_sync(kAllLanes, squares, offset);
    float each[4];
#pragma unroll
    for (int token = 0; token < 4; ++token) each[token] = __shfl_sync(kAllLanes, squares, 8 * token);
    const uint32_t slot = G::kNormOffset + ring.stage * G::kNormArrival;
    const uint32_t peer = remote_address(at.shared, at.lane & 15);
    if (at.lane < kCtas) {
      send4(peer + slot + at.rank * 64 + warp * 16, each[0], each[1], each[2], each[3],
            peer + G::kBarriersOffset + 8 * (G::kNormed + ring.stage));
    }
    wait_for(at.barrier(G::kNormed, ring.stage), ring.parity);
    if (warp == 0 && at.lane == 0) barrier_expect(at.barrier(G::kNormed, ring.stage), G::kNormArrival);
    const int token = warp * 4 + (at.lane >> 3);
    const uint32_t source = at.shared + slot + (at.lane & 7) * 64 + token * 4;
    float sum = read_shared(source) + read_shared(source + 512);
#pragma unroll
    for (int offset = 1; offset < 8; offset *= 2) sum += __shfl_xor_sync(kAllLanes, sum, offset);
    ring.step(G::kCollapseGroups);
    return inverse_root(fmaf(sum, 1.0f / G::kHidden, params.norm_eps));
  }
};

__device__ __forceinline__ uint4 normed_words(const uint4& y, const uint4& weight, float factor) {
  uint4 out;
  auto* words = reinterpret_cast<uint32_t*>(&out);
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    const float2 value = unpack_pair(word_of(y, word), DeviceBf16{});
    const float2 w = unpack_pair(word_of(weight, word), DeviceBf16{});
    words[word] = pack_pair(value.x * factor * w.x, value.y * factor * w.y, DeviceBf16{});
  }
  return out;
}

// A lane's part of a token's row of the layer input: 16 bytes of every box.
struct OutRow {
  uint4* out;
  bool valid;
};

template <class G>
__device__ __forceinline__ OutRow out_row(const Params& params, const Context<G>& at, const LanePlace& place,
                                          int tile) {
  const int64_t token = at.first_token(tile) + place.token;
  auto* row = static_cast<DeviceBf16*>(params.layer_input) + token * G::kHidden + at.rank * G::kColumns +
              place.chunk * 8;
  return {reinterpret_cast<uint4*>(row), token < params.tokens};
}

template <class G>
__device__ __forceinline__ void collapse_warp(const Params& params, void* memory) {
  constexpr int kThreads = 128 * G::kCollapseGroups;
  constexpr int kAhead = G::kNorm || (G::kBoxes == 7 && G::kSeam) ? 1 : 2;  // boxes in registers at a time
  Context<G> at;
  at.derive(params, memory);
  if constexpr (G::kNorm) {
    const auto* source = static_cast<const uint32_t*>(params.norm_weight) + at.rank * G::kColumns / 2;
    auto* target = reinterpret_cast<uint32_t*>(static_cast<char*>(memory) + G::kNormWeightOffset);
    for (int index = at.thread - 384; index < G::kColumns / 2; index += kThreads)
      target[index] = source[index];
    sync_named<kNormWeightReady, kThreads>();
  }
  cluster_wait();
  wait_for_grids();
  const int group = (at.warp - 12) >> 2;
  const int warp = (at.warp - 12) & 3;
  const LanePlace place(warp, at.lane);
  Ring<G::kStages> ring{group, 0};
  NormExchange<G> exchange{{group, 0}};
  uint4 parked[G::kNorm && !G::kParkInMemory ? G::kBoxes : 1];
  for (int tile = group; tile < at.tiles; tile += G::kCollapseGroups, ring.step(G::kCollapseGroups)) {
#pragma unroll
    for (int box = 0; box < G::kBoxes; ++box) {
      wait_for(at.barrier(G::kSeam ? G::kPosted : G::kFull, ring.stage * G::kBoxes + box), ring.parity);
    }
    wait_for(at.barrier(G::kPre, ring.stage), ring.parity);
    if (warp == 0 && at.lane == 0) barrier_expect(at.barrier(G::kPre, ring.stage), G::kPreArrival);
    const float4 pre =
        read_shared4f(at.shared + G::kPreOffset + ring.stage * kTokens * 16 + place.token * 16);
    const uint32_t stage = at.shared + place.offset + ring.stage * G::kStageBytes;
    const OutRow row = out_row<G>(params, at, place, tile);
    float squares = 0;
    uint4 streams[kAhead][4];
    const auto load = [&](int box) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        streams[box % kAhead][j] = read_shared4(stage + box * G::kBoxBytes + j * 2048);
    };
    if (kAhead == 2) load(0);
#pragma unroll
    for (int box = 0; box < G::kBoxes; ++box) {
      if (box + kAhead - 1 < G::kBoxes) load(box + kAhead - 1);
      const uint4 y = collapse_words<G::kNorm, G::kRoundedNorm>(streams[box % kAhead], pre, &squares);
      if (G::kNorm && !G::kParkInMemory) {
        parked[G::kNorm && !G::kParkInMemory ? box : 0] = y;
      } else if (row.valid) {
        row.out[box * 8] = y;
      }
      __syncwarp();
      if (at.lane == 0) arrive_after(at.barrier(G::kEmpty, ring.stage * G::kBoxes + box), squares);
    }
    if constexpr (G::kNorm) {
      const float factor = exchange.factor(params, at, warp, squares);
#pragma unroll
      for (int box = 0; box < G::kBoxes; ++box) {
        const uint4 weight = read_shared4(at.shared + G::kNormWeightOffset + box * 128 + place.chunk * 16);
        if (!row.valid) continue;
        const uint4 y = G::kParkInMemory ? row.out[box * 8] : parked[G::kParkInMemory ? 0 : box];
        row.out[box * 8] = normed_words(y, weight, factor);
      }
    }
  }
}

}  // namespace fmhc::cuda::cluster
