// The single warps of a CTA: loads, coefficients of its token, Sinkhorn and the stores of the new residual.
#pragma once

#include "backends/cuda/cluster/multiply.cuh"
#include "backends/cuda/common/math.cuh"

namespace fmhc::cuda::cluster {

struct Maps {
  const CUtensorMap *residual, *sublayer_output, *residual_out;
};

template <class G>
__device__ __forceinline__ void load_thread(const Params& params, const Context<G>& at, const Maps& maps) {
  if (G::kSharedSteps > 0) {
    constexpr uint32_t kBytes = G::kSharedSteps * G::kStepBytes;
    barrier_expect(at.barrier(G::kWeights, 0), kBytes);
    load_bytes(at.shared + G::kWeightsOffset,
               static_cast<const uint4*>(params.packed) + static_cast<size_t>(at.rank) * G::kSteps * 768,
               kBytes, at.barrier(G::kWeights, 0));
  }
  wait_for_grids();
  Ring<G::kStages> ring{0, 1};
  for (int tile = 0; tile < at.tiles; ++tile, ring.step()) {
    const int64_t token = at.first_token(tile);
#pragma unroll 1
    for (int box = 0; box < G::kBoxes; ++box) {
      wait_for(at.barrier(G::kEmpty, ring.stage * G::kBoxes + box), ring.parity);
      const uint32_t full = at.barrier(G::kFull, ring.stage * G::kBoxes + box);
      const int column = static_cast<int>(at.rank) * G::kColumns + box * 64;
      const int row = static_cast<int>(token);
      if (G::kSeam && box == 0) {
        const auto tokens = static_cast<uint32_t>(min(kTokens, params.tokens - row));
        barrier_expect(full, G::kArrivalBytes + tokens * 80);
        const uint32_t mix = at.shared + G::kMixInOffset + ring.stage * G::kMixInBytes;
        load_bytes(mix, params.post_in + token * 4, tokens * 16, full);
        load_bytes(mix + kTokens * 16, params.comb_in + token * 16, tokens * 64, full);
      } else {
        barrier_expect(full, G::kArrivalBytes);
      }
      load_box3(at.shared + ring.stage * G::kStageBytes + box * G::kBoxBytes, maps.residual, column, row,
                full);
      if (G::kSeam) {
        load_box2(
            at.shared + G::kSublayerOffset + ring.stage * G::kSublayerBytes + box * G::kSublayerBoxBytes,
            maps.sublayer_output, column, row, full);
      }
    }
  }
}

// The owner of token `rank` of every tile: adds the CTAs' sums in ascending order, sends pre to all, queues
// the mixing logits for Sinkhorn.
template <class G>
__device__ __forceinline__ void coefficient_warp(const Params& params, const Context<G>& at) {
  const int lane = at.lane;
  const float scale = !G::kCollapse ? 0.0f : params.scale[!G::kSite || lane < 4 ? 0 : lane < 8 ? 1 : 2];
  const float base =
      G::kCollapse && lane < 8 * G::kLogitTiles && (G::kSite || lane < 4) ? params.base[lane] : 0.0f;
  const uint32_t peer = remote_address(at.shared, lane & 15);
  wait_for_grids();
  Ring<G::kStages> ring{0, 0};
  for (int tile = 0; tile < at.tiles; ++tile, ring.step()) {
    const int64_t token = at.first_token(tile) + at.rank;
    wait_for(at.barrier(G::kMix, ring.stage), ring.parity);
    if (lane == 0) barrier_expect(at.barrier(G::kMix, ring.stage), G::kMixArrival);  // for its next use
    float sums[4] = {};
    const uint32_t slot =
        at.shared + G::kMixOffset + ring.stage * kCtas * G::kMixSlotFloats * 4 + min(lane, 24) * 4;
#pragma unroll
    for (int source = 0; source < kCtas; ++source)
      sums[source & 3] += read_shared(slot + source * G::kMixSlotFloats * 4);
    const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    const bool valid = token < params.tokens;
    if constexpr (!G::kCollapse) {
      if (lane < 24 && valid) params.dot_mix[token * 24 + lane] = sum;
      if (lane == 24 && valid) params.sqrsum[token] = sum;
      if (lane < kCtas) {
        send4(peer + G::kPreOffset + ring.stage * kTokens * 16 + at.rank * 16, 0, 0, 0, 0,
              peer + G::kBarriersOffset + 8 * (G::kPre + ring.stage));
      }
      continue;
    }
    const float rstd = inverse_root(fmaf(__shfl_sync(kAllLanes, sum, 24), 1.0f / G::kFlat, params.rms_eps));
    const float logit = logit_of(sum, rstd, scale, base);
    const float gate = sigmoid(logit);
    const float mine = gate + params.pre_eps;
    float pre[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) pre[j] = __shfl_sync(kAllLanes, mine, j);
    if (lane < kCtas) {
      send4(peer + G::kPreOffset + ring.stage * kTokens * 16 + at.rank * 16, pre[0], pre[1], pre[2], pre[3],
            peer + G::kBarriersOffset + 8 * (G::kPre + ring.stage));
    }
    if (G::kSite && lane >= 4 && lane < 8 && valid)
      params.post_mix[token * 4 + lane - 4] = params.post_mult * gate;
    if (lane < 4 && valid && params.pre_mix != nullptr) params.pre_mix[token * 4 + lane] = mine;
    if (!G::kSite) continue;
    const int batch = tile >> 4;  // Sinkhorn takes 16 tokens at a time, two batches buffered
    if ((tile & 15) == 0 && batch >= 2) {
      wait_for(at.barrier(G::kLogitsEmpty, batch & 1), static_cast<uint32_t>(((batch >> 1) - 1) & 1));
    }
    if (lane >= 8 && lane < 24)
      write_shared(at.shared + G::kLogitsOffset + ((tile & 31) * 17 + lane - 8) * 4, logit);
    __syncwarp();
    if (((tile & 15) == 15 || tile == at.tiles - 1) && lane == 0)
      arrive_at(at.barrier(G::kLogitsFull, batch & 1));
  }
}

template <class G>
__device__ __forceinline__ void sinkhorn_batch(const Params& params, const Context<G>& at, int batch) {
  const int tile = batch * 16 + at.lane;
  float mix[4][4];
#pragma unroll
  for (int index = 0; index < 16; ++index) {
    mix[index / 4][index % 4] = read_shared(at.shared + G::kLogitsOffset + ((tile & 31) * 17 + index) * 4);
  }
  __syncwarp();
  if (at.lane == 0) arrive_at(at.barrier(G::kLogitsEmpty, batch & 1));
  sinkhorn_scaling(mix, params.iterations, params.sinkhorn_eps);
  const int64_t token = at.first_token(tile) + at.rank;
  if (at.lane >= 16 || tile >= at.tiles || token >= params.tokens) return;
  auto* out = reinterpret_cast<float4*>(params.comb_mix + token * 16);
#pragma unroll
  for (int j = 0; j < 4; ++j) out[j] = {mix[j][0], mix[j][1], mix[j][2], mix[j][3]};
}

// Stores the boxes of the new residual as they are ready, and makes mixes in between.
template <class G>
__device__ __forceinline__ void sinkhorn_warp(const Params& params, const Context<G>& at, const Maps& maps) {
  wait_for_grids();
  int batch = 0;
  if (G::kSeam) {
    Ring<G::kStages> ring{0, 0};
    for (int tile = 0; tile < at.tiles; ++tile, ring.step()) {
      if (at.lane == 0) {
        const int row = static_cast<int>(at.first_token(tile));
#pragma unroll 1
        for (int box = 0; box < G::kBoxes; ++box) {
          wait_for(at.barrier(G::kPosted, ring.stage * G::kBoxes + box), ring.parity);
          store_box3(maps.residual_out, static_cast<int>(at.rank) * G::kColumns + box * 64, row,
                     at.shared + ring.stage * G::kStageBytes + box * G::kBoxBytes);
          wait_for_store_reads<1>();
          if (box > 0) arrive_at(at.barrier(G::kEmpty, ring.stage * G::kBoxes + box - 1));
        }
        wait_for_store_reads<0>();
        arrive_at(at.barrier(G::kEmpty, ring.stage * G::kBoxes + G::kBoxes - 1));
      }
      __syncwarp();
      const uint32_t parity = static_cast<uint32_t>((batch >> 1) & 1);
      if (batch * 16 + 16 <= tile &&
          __all_sync(kAllLanes, barrier_done(at.barrier(G::kLogitsFull, batch & 1), parity))) {
        sinkhorn_batch<G>(params, at, batch++);
      }
    }
  }
  for (; batch * 16 < at.tiles; ++batch) {
    wait_for(at.barrier(G::kLogitsFull, batch & 1), static_cast<uint32_t>((batch >> 1) & 1));
    sinkhorn_batch<G>(params, at, batch);
  }
}

}  // namespace fmhc::cuda::cluster
