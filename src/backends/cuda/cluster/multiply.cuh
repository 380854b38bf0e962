// The eight multiplying warps: partial dots and square sums of a tile's slice. Warp w takes stream w / 2 and
// half of the 16-column steps of every box; its share of fn stays in registers for the whole launch.
#pragma once

#include "backends/cuda/cluster/ptx.cuh"
#include "backends/cuda/cluster/tile.cuh"
#include "backends/cuda/common/reduce.cuh"
#include "backends/cuda/common/storage.cuh"

namespace fmhc::cuda::cluster {

inline constexpr int kPartsFull = 1,
                     kPartsEmpty = 2;  // named barriers between these warps and the adding one
inline constexpr int kPartsThreads = 9 * 32;

__device__ __forceinline__ void add_squares(const uint32_t (&a)[4], float& upper, float& lower) {
#pragma unroll
  for (int half = 0; half < 4; half += 2) {
    const float2 up = unpack_pair(a[half], DeviceBf16{});
    const float2 low = unpack_pair(a[half + 1], DeviceBf16{});
    upper = fmaf(up.x, up.x, upper);
    lower = fmaf(low.x, low.x, lower);
    upper = fmaf(up.y, up.y, upper);
    lower = fmaf(low.y, low.y, lower);
  }
}

template <class G>
__device__ __forceinline__ void multiply_warp(const Params& params, const void* memory) {
  Context<G> at;
  at.derive(params, memory);
  const int row_pair = at.lane >> 2;
  const int column_pair = at.lane & 3;
  uint32_t weights[G::kRegisterSteps][12];
  const uint4* packed = static_cast<const uint4*>(params.packed) +
                        (static_cast<size_t>(at.rank) * G::kSteps * 8 + at.warp) * 96 + at.lane;
#pragma unroll
  for (int step = 0; step < G::kRegisterSteps; ++step) {
#pragma unroll
    for (int part = 0; part < 3; ++part) {
      const uint4 v = load_constant4(packed + (step + G::kSharedSteps) * 768 + part * 32);
      weights[step][4 * part] = v.x;
      weights[step][4 * part + 1] = v.y;
      weights[step][4 * part + 2] = v.z;
      weights[step][4 * part + 3] = v.w;
    }
  }
  const int row = (at.lane & 7) + ((at.lane >> 3) & 1) * 8;
  const uint32_t row_offset = static_cast<uint32_t>(row * 128 + (((at.lane >> 4) ^ (row & 7)) << 4));
  if (G::kSharedSteps > 0) wait_for(at.barrier(G::kWeights, 0), 0);
  cluster_wait();
  Ring<G::kStages> ring{0, 0};
  for (int tile = 0; tile < at.tiles; ++tile, ring.step()) {
    float high[3][4] = {}, low[3][4] = {};
    float squares_upper = 0, squares_lower = 0;
    const uint32_t base = (at.shared + ring.stage * G::kStageBytes + row_offset + (at.warp >> 1) * 2048) ^
                          static_cast<uint32_t>((at.warp & 1) << 6);
#pragma unroll
    for (int step = 0; step < G::kSteps; ++step) {
      if (step % 2 == 0) {
        wait_for(at.barrier(G::kSeam ? G::kPosted : G::kFull, ring.stage * G::kBoxes + step / 2),
                 ring.parity);
      }
      uint32_t a[4];
      load_matrices(a, (base ^ static_cast<uint32_t>((step & 1) << 5)) + (step >> 1) * G::kBoxBytes);
      uint32_t b[12];
      if (step >= G::kSharedSteps) {
#pragma unroll
        for (int part = 0; part < 12; ++part)
          b[part] = weights[step >= G::kSharedSteps ? step - G::kSharedSteps : 0][part];
      } else {
#pragma unroll
        for (int part = 0; part < 3; ++part) {
          const uint4 v = read_shared4(at.shared + G::kWeightsOffset +
                                       ((step * 8 + at.warp) * 3 + part) * 512 + at.lane * 16);
          b[4 * part] = v.x;
          b[4 * part + 1] = v.y;
          b[4 * part + 2] = v.z;
          b[4 * part + 3] = v.w;
        }
      }
#pragma unroll
      for (int n = 0; n < G::kLogitTiles; ++n)
        mma_bf16(high[n], a[0], a[1], a[2], a[3], b[2 * n], b[2 * n + 1]);
#pragma unroll
      for (int n = 0; n < G::kLogitTiles; ++n) {
        mma_bf16(G::kTwoSums ? low[n] : high[n], a[0], a[1], a[2], a[3], b[6 + 2 * n], b[7 + 2 * n]);
      }
      add_squares(a, squares_upper, squares_lower);
      if (!G::kCollapse && step % 2 == 1) {
        __syncwarp();
        if (at.lane == 0)
          arrive_after(at.barrier(G::kEmpty, ring.stage * G::kBoxes + step / 2), squares_upper);
      }
    }
#pragma unroll
    for (int n = 0; n < 12 && G::kTwoSums; ++n) high[n / 4][n % 4] += low[n / 4][n % 4];
#pragma unroll
    for (int offset = 1; offset < 4; offset *= 2) {
      squares_upper += __shfl_xor_sync(kAllLanes, squares_upper, offset);
      squares_lower += __shfl_xor_sync(kAllLanes, squares_lower, offset);
    }
    sync_named<kPartsEmpty, kPartsThreads>();
    const uint32_t parts =
        at.shared + G::kPartsOffset + (at.warp * kTokens + row_pair) * 96 + column_pair * 8;
#pragma unroll
    for (int n = 0; n < G::kLogitTiles; ++n) {
      write_shared2(parts + n * 32, high[n][0], high[n][1]);
      write_shared2(parts + 8 * 96 + n * 32, high[n][2], high[n][3]);
    }
    if (column_pair == 0) {
      const uint32_t squares = at.shared + G::kSquaresOffset + (at.warp * kTokens + row_pair) * 4;
      write_shared(squares, squares_upper);
      write_shared(squares + 32, squares_lower);
    }
    arrive_named<kPartsFull, kPartsThreads>();
  }
}

// The owners' answers to the tile that had this stage before.
template <class G>
__device__ __forceinline__ void wait_for_owners(const Context<G>& at, const Ring<G::kStages>& ring) {
  wait_for(at.barrier(G::kPre, ring.stage), ring.parity ^ 1);
  if (at.lane == 0) barrier_expect(at.barrier(G::kPre, ring.stage), G::kPreArrival);
  __syncwarp();
}

// One warp: adds the eight warps' parts in ascending order and sends each token's 25 numbers to its owner.
template <class G>
__device__ __forceinline__ void add_warp(const Context<G>& at) {
  const int token = at.lane & 15;
  const int half = at.lane >> 4;  // logits 12 * half .. + 11
  const uint32_t owner = remote_address(at.shared, token);
  Ring<G::kStages> ring{0, 0};
  arrive_named<kPartsEmpty, kPartsThreads>();
  for (int tile = 0; tile < at.tiles; ++tile, ring.step()) {
    sync_named<kPartsFull, kPartsThreads>();
    float4 sum[3];
    float squares = 0;
#pragma unroll
    for (int warp = 0; warp < 8; ++warp) {
#pragma unroll
      for (int quad = 0; quad < 3; ++quad) {
        const float4 v = read_shared4f(at.shared + G::kPartsOffset + (warp * kTokens + token) * 96 +
                                       half * 48 + quad * 16);
        if (warp == 0) {
          sum[quad] = v;
        } else {
          sum[quad].x += v.x;
          sum[quad].y += v.y;
          sum[quad].z += v.z;
          sum[quad].w += v.w;
        }
      }
      squares += read_shared(at.shared + G::kSquaresOffset + (warp * kTokens + token) * 4);
    }
    if (tile + 1 < at.tiles) arrive_named<kPartsEmpty, kPartsThreads>();
    // Without a collapse nothing else says that the owners have read what was sent kStages tiles ago.
    if (!G::kCollapse && tile >= G::kStages) wait_for_owners<G>(at, ring);
    const uint32_t target =
        owner + G::kMixOffset + (ring.stage * kCtas + at.rank) * G::kMixSlotFloats * 4 + half * 48;
    const uint32_t barrier = owner + G::kBarriersOffset + 8 * (G::kMix + ring.stage);
#pragma unroll
    for (int quad = 0; quad < 3; ++quad) {
      send4(target + quad * 16, sum[quad].x, sum[quad].y, sum[quad].z, sum[quad].w, barrier);
    }
    if (half != 0) store_remote(target + 48, squares, barrier);
  }
  // A CTA stays until everything that is sent to it has come.
  for (int tile = max(0, at.tiles - G::kStages); !G::kCollapse && tile < at.tiles; ++tile) {
    Ring<G::kStages> last{tile % G::kStages, static_cast<uint32_t>(tile / G::kStages & 1)};
    wait_for(at.barrier(G::kPre, last.stage), last.parity);
  }
}

}  // namespace fmhc::cuda::cluster
