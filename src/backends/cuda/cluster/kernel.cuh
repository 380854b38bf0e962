// The cluster kernel: sets up the barriers and sends each warp to its role.
#pragma once

#include "backends/cuda/cluster/elementwise.cuh"
#include "backends/cuda/cluster/service.cuh"

namespace fmhc::cuda::cluster {

// One thread a barrier: how many arrive, and what the first use of an exchange slot expects.
template <class G>
__device__ __forceinline__ void set_up_barriers(const Context<G>& at) {
  const int index = at.thread;
  if (index >= G::kBarriers) return;
  const uint32_t barrier = at.barriers + 8 * index;
  // A box is empty when the four collapse warps have read it, in a seam the copy engine too; without a
  // collapse the eight multiplying warps. It is posted by four.
  constexpr uint32_t kReaders = !G::kCollapse ? 8 : G::kSeam ? 5 : 4;
  const bool empty = index >= G::kEmpty && index < G::kEmpty + G::kStages * G::kBoxes;
  const bool posted = index >= G::kPosted && index < G::kMix;
  barrier_init(barrier, empty ? kReaders : posted ? 4 : 1);
  barrier_init_fence();
  if (index >= G::kMix && index < G::kPre) barrier_expect(barrier, G::kMixArrival);
  if (index >= G::kPre && index < G::kNormed) barrier_expect(barrier, G::kPreArrival);
  if (G::kNorm && index >= G::kNormed && index < G::kLogitsFull) barrier_expect(barrier, G::kNormArrival);
}

template <class G>
__global__ void __launch_bounds__(G::kThreads, 1)
    cluster_kernel(const __grid_constant__ CUtensorMap residual,
                   const __grid_constant__ CUtensorMap sublayer_output,
                   const __grid_constant__ CUtensorMap residual_out, const __grid_constant__ Params params) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Context<G> at;
  at.derive(params, memory);
  set_up_barriers(at);
  if (at.thread == G::kThreads - 1) {
    prefetch_map(&residual);
    if (G::kSeam) {
      prefetch_map(&sublayer_output);
      prefetch_map(&residual_out);
    }
  }
  __syncthreads();
  cluster_arrive();
  allow_dependents();
  const Maps maps{&residual, &sublayer_output, &residual_out};
  if (at.warp < 8) {
    take_registers<G::kMultiplyRegisters>();
    multiply_warp<G>(params, memory);
  } else if (at.warp < 12) {
    give_registers<G::kServiceRegisters>();
    at.derive(params, memory);
    if (at.warp == 8) {
      if (at.lane == 0) load_thread<G>(params, at, maps);
      __syncwarp();
      cluster_wait();
    } else {
      cluster_wait();
      if (at.warp == 9) coefficient_warp<G>(params, at);
      if (at.warp == 10 && G::kSite) sinkhorn_warp<G>(params, at, maps);
      if (at.warp == 11) add_warp<G>(at);
    }
  } else if (G::kCollapse && at.warp < 12 + 4 * G::kCollapseGroups) {
    if constexpr (G::kCollapse) {
      give_registers<G::kCollapseRegisters>();
      collapse_warp<G>(params, memory);
    }
  } else if constexpr (G::kSeam) {
    give_registers<G::kPostRegisters>();
    post_warp<G>(params, memory);
  }
}

}  // namespace fmhc::cuda::cluster
