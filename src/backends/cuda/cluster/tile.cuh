// A cluster of 16 CTAs owns a tile of 16 tokens: CTA c keeps columns [c H/16, (c+1) H/16) of the four streams
// in shared memory from the projection to the collapse, so the streams are read once. They arrive as boxes of
// 64 columns x 16 tokens x 4 streams, 128-byte swizzled; every box has its barriers, so that work begins
// while the tile arrives.
//
// Warps 0-7 multiply | 8 loads | 9 makes the coefficients of one token a tile | 10 Sinkhorn, stores of the
// new residual | 11 adds the partial sums of warps 0-7 | 12-15 collapse | 16-19 post, or with the norm more
// collapse.
//
// Exchange slots need no barrier of their own: what is sent for tile i + kStages waits (copy engine, empty
// barrier) for the collapse of tile i in the sending CTA, which waited for pre of tile i from all owners, who
// had read all their slots of tile i by then.
#pragma once

#include <cstdint>

#include "backends/cuda/cluster/kernels.h"
#include "backends/cuda/cluster/params.h"
#include "backends/cuda/sm90/cluster.cuh"

namespace fmhc::cuda::cluster {

template <int kHidden_, Form kForm_, Norm kNorm_>
struct Tile {
  static constexpr int kHidden = kHidden_;
  static constexpr Form kForm = kForm_;
  static constexpr bool kNorm = kNorm_ != Norm::kNone, kRoundedNorm = kNorm_ == Norm::kUnfused;
  static constexpr bool kSeam = kForm == Form::kSeam;
  static constexpr bool kSite = kForm == Form::kPre || kSeam;  // makes post and comb
  static constexpr bool kCollapse = kForm != Form::kProject;
  static constexpr int kLogitTiles = kForm == Form::kHead ? 1 : 3;  // of 8
  static constexpr int kFlat = 4 * kHidden;
  static constexpr int kColumns = kHidden / kCtas;
  static constexpr int kBoxes = kColumns / 64;
  static constexpr int kSteps = 2 * kBoxes;  // of 16 columns a multiplying warp: two of every box
  static constexpr int kStages = kSeam ? (kHidden == 4096   ? 4
                                          : kHidden == 5120 ? 3
                                                            : 2)
                                       : (kHidden == 4096   ? 6 - kNorm
                                          : kHidden == 5120 ? 5 - kNorm
                                                            : 3);
  static constexpr int kCollapseGroups =
      !kSeam && kNorm && kHidden < 7168 ? 2 : 1;  // warpgroups that take turns
  // Steps a warp whose weights sit in shared memory, the others' in registers.
  static constexpr int kSharedSteps = kSeam ? (kHidden == 7168   ? 4
                                               : kHidden == 5120 ? 2
                                                                 : 0)
                                            : (kHidden == 7168 || (kHidden == 5120 && kNorm) ? 2 : 0);
  static constexpr int kRegisterSteps = kSteps - kSharedSteps;
  static constexpr bool kTwoSums = kHidden < 7168;  // high and low parts of fn summed apart
  static constexpr bool kParkInMemory =
      kSeam && kNorm && kHidden == 7168;  // the collapse waits for its norm in L2
  static constexpr int kWarpgroups = kSeam ? 5 : kCollapse ? 3 + kCollapseGroups : 3;
  static constexpr int kThreads = 128 * kWarpgroups;
  // Registers a thread by role, so that no role spills in its tile loop: a spilled value costs a trip to L2 a
  // tile. The sum over the warpgroups is at most 512 (4 of them) or 480 (5).
  static constexpr int kServiceRegisters = 48, kPostRegisters = 56;
  static constexpr bool kHead = kForm == Form::kHead;  // needs fewer weights in registers
  static constexpr int kMultiplyRegisters = kSeam                  ? (kHidden == 7168 && !kNorm ? 160 : 152)
                                            : kCollapseGroups == 2 ? (kHead ? 128 : 144)
                                            : kHead                ? 152
                                            : kHidden < 7168 || kNorm ? 184
                                                                      : 192;
  static constexpr int kCollapseRegisters = kSeam                     ? (kHidden == 7168 && !kNorm ? 56 : 72)
                                            : kCollapseGroups == 2    ? (kHead ? 80 : 72)
                                            : kHead                   ? 120
                                            : kHidden < 7168 || kNorm ? 96
                                                                      : 80;
  static constexpr int kNormSlots = kStages + kCollapseGroups;

  static constexpr int kBoxBytes = 4 * kTokens * 64 * 2;
  static constexpr int kStageBytes = kBoxes * kBoxBytes;
  static constexpr int kSublayerBoxBytes = kTokens * 64 * 2;
  static constexpr int kSublayerBytes = kSeam ? kBoxes * kSublayerBoxBytes : 0;
  static constexpr int kMixInBytes = kSeam ? kTokens * 20 * 4 : 0;
  static constexpr int kArrivalBytes = kBoxBytes + (kSeam ? kSublayerBoxBytes : 0);
  static constexpr int kStepBytes = 8 * 3 * 512;  // packed fn of a step of all eight warps
  static constexpr int kMixSlotFloats = 28;       // of a (token, source CTA): 24 logits, square sum, padding

  static constexpr int kSublayerOffset = kStages * kStageBytes;
  static constexpr int kMixInOffset = kSublayerOffset + kStages * kSublayerBytes;
  static constexpr int kWeightsOffset = kMixInOffset + kStages * kMixInBytes;
  static constexpr int kPartsOffset = kWeightsOffset + kSharedSteps * kStepBytes;
  static constexpr int kSquaresOffset = kPartsOffset + 8 * kTokens * 24 * 4;
  static constexpr int kMixOffset = kSquaresOffset + 8 * kTokens * 4;
  static constexpr int kPreOffset = kMixOffset + kStages * kCtas * kMixSlotFloats * 4;
  static constexpr int kLogitsOffset = kPreOffset + kStages * kTokens * 16;  // ring of 32 tokens for Sinkhorn
  static constexpr int kNormOffset = kLogitsOffset + 32 * 17 * 4;
  static constexpr int kNormWeightOffset = kNormOffset + (kNorm ? kNormSlots * kCtas * kTokens * 4 : 0);
  static constexpr int kBarriersOffset = kNormWeightOffset + (kNorm ? kColumns * 2 : 0);

  // Barriers, by first index.
  static constexpr int kFull = 0;                                  // a box has arrived
  static constexpr int kEmpty = kStages * kBoxes;                  // all have read it
  static constexpr int kPosted = 2 * kStages * kBoxes;             // seam: it holds the new residual
  static constexpr int kMix = (kSeam ? 3 : 2) * kStages * kBoxes;  // sums of all CTAs are here
  static constexpr int kPre = kMix + kStages;                      // collapse weights of all tokens are here
  static constexpr int kNormed = kPre + kStages;                   // square sums of all CTAs are here
  static constexpr int kLogitsFull = kNormed + kNormSlots;         // 16 tokens wait for Sinkhorn
  static constexpr int kLogitsEmpty = kLogitsFull + 2;
  static constexpr int kWeights = kLogitsEmpty + 2;  // shared part of fn is here
  static constexpr int kBarriers = kWeights + 1;
  static constexpr int kBytes = kBarriersOffset + 8 * kBarriers;

  static constexpr int kMixArrival = kCtas * 100;  // 25 floats from each CTA
  static constexpr int kPreArrival = kTokens * 16;
  static constexpr int kNormArrival = kCtas * kTokens * 4;
  static_assert(kBytes <= 232448 && kHidden % 1024 == 0);
};

// Where a thread stands. Derived anew at the start of a role: kept across the branch the compiler would spill
// it.
template <class G>
struct Context {
  uint32_t shared, barriers, rank;
  int thread, warp, lane;
  int first_tile, tile_step, tiles;  // of this cluster: first_tile + i * tile_step

  __device__ __forceinline__ void derive(const Params& params, const void* memory) {
    uint32_t cta, ctas;
    asm volatile("mov.u32 %0, %1;" : "=r"(shared) : "r"(shared_address(memory)));
    asm volatile("mov.u32 %0, %tid.x;" : "=r"(thread));
    asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %ctaid.x;" : "=r"(cta));
    asm volatile("mov.u32 %0, %nctaid.x;" : "=r"(ctas));
    first_tile = static_cast<int>(cta / kCtas);
    tile_step = static_cast<int>(ctas / kCtas);
    tiles = params.tiles_each + (first_tile < params.tiles_more ? 1 : 0);
    barriers = shared + G::kBarriersOffset;
    warp = thread >> 5;
    lane = thread & 31;
  }
  __device__ __forceinline__ uint32_t barrier(int first, int index) const {
    return barriers + 8 * (first + index);
  }
  __device__ __forceinline__ int64_t first_token(int tile) const {
    return int64_t{kTokens} * (first_tile + tile * tile_step);
  }
};

// Walks the stages and the parity of their barriers.
template <int kCount>
struct Ring {
  int stage;
  uint32_t parity;

  __device__ __forceinline__ void step(int by = 1) {
    stage += by;
    if (stage >= kCount) {
      stage -= kCount;
      parity ^= 1;
    }
  }
};

}  // namespace fmhc::cuda::cluster
