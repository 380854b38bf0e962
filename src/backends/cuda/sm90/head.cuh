// head in one launch and one visit of the streams, for four bf16 streams without a norm. A cluster shares
// every token by columns; a thread owns two columns of all four streams, with its part of fn in registers for
// the whole launch. Batches of four tokens: dots of batch k, then the collapse of batch k - 1, whose sums
// have crossed the cluster meanwhile, then the loads of batch k + 2. The streams never leave the registers
// between their dots and their collapse. A token's bits depend on nothing but its streams: products and sums
// in fp32, in an order that only H fixes.
#pragma once

#include "backends/cuda/common/math.cuh"
#include "backends/cuda/common/reduce.cuh"
#include "backends/cuda/common/storage.cuh"
#include "backends/cuda/params.h"
#include "backends/cuda/sm90/cluster.cuh"

namespace fmhc::cuda {

inline constexpr int kHeadTokens = 4;                // of a batch
inline constexpr int kHeadValues = kHeadTokens * 5;  // four dots and a square sum each
inline constexpr int kHeadSlots =
    4;  // what is sent for batch k + 4 follows from every CTA's collapse of batch k
inline constexpr int kHeadWarps = 16;

template <int kCluster>
struct HeadShared {
  float warps[2][kHeadWarps][kHeadValues];
  float ranks[kHeadSlots][kCluster][kHeadValues];
  alignas(8) uint64_t full[kHeadSlots];
};

using HeadBatch = uint32_t[kHeadTokens][4];  // two columns of each token and stream

__device__ __forceinline__ void load_batch(const HeadParams& p, int64_t batch, int64_t column,
                                           HeadBatch& raw) {
  const auto* base = static_cast<const unsigned char*>(p.residual.data) + column * 2;
#pragma unroll
  for (int t = 0; t < kHeadTokens; ++t) {
    const int64_t token = min(batch * kHeadTokens + t, p.tokens - 1);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      asm volatile("ld.global.L1::no_allocate.L2::256B.u32 %0, [%1];"
                   : "=r"(raw[t][j])
                   : "l"(base + (token * p.residual.token + j * p.residual.stream) * 2)
                   : "memory");
    }
  }
}

// Adds `count` values over the warp; each step halves what a lane holds. Returns the lane's one value.
template <int kCount, int kOffset>
__device__ __forceinline__ void fold(float (&value)[kHeadValues], int lane) {
  constexpr int kHalf = (kCount + 1) / 2;
  const bool upper = (lane & kOffset) != 0;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const float other = i + kHalf < kCount ? value[i + kHalf] : 0.0f;
    const float give = upper ? value[i] : other;
    const float keep = upper ? other : value[i];
    value[i] = keep + __shfl_xor_sync(kAllLanes, give, kOffset);
  }
  if constexpr (kOffset > 1) fold<kHalf, kOffset / 2>(value, lane);
}

// Which of the values the fold leaves in this lane; -1 for none. The halves are 10, 5, 3, 2, 1.
__device__ __forceinline__ int folded_index(int lane) {
  const int pair = (lane >> 1 & 1) * 2 + (lane & 1);
  const int five = (lane >> 2 & 1) * 3 + pair;
  if (pair > 2 || five > 4) return -1;
  return (lane >> 4) * 10 + (lane >> 3 & 1) * 5 + five;
}

template <int kCluster>
struct HeadThread {
  const HeadParams& p;
  HeadShared<kCluster>& shared;
  int lane, warp, warps;
  uint32_t rank;
  int64_t column;
  float fn[4][4][2];  // [logit][stream][column]

  __device__ __forceinline__ void load_fn() {
#pragma unroll
    for (int o = 0; o < 4; ++o) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float* at = p.fn + o * p.fn_row + j * p.hidden + column;
        if (p.fn_pairs != 0) {
          const float2 both = *reinterpret_cast<const float2*>(at);
          fn[o][j][0] = both.x, fn[o][j][1] = both.y;
        } else {
          fn[o][j][0] = at[0], fn[o][j][1] = at[1];
        }
      }
    }
  }

  // Sums of this CTA's columns to every CTA of the cluster.
  __device__ __forceinline__ void send(int64_t step, const HeadBatch& raw) {
    float value[kHeadValues] = {};
#pragma unroll
    for (int t = 0; t < kHeadTokens; ++t) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float2 x = unpack_pair(raw[t][j], DeviceBf16{});
#pragma unroll
        for (int o = 0; o < 4; ++o) {
          value[t * 5 + o] = fmaf(fn[o][j][1], x.y, fmaf(fn[o][j][0], x.x, value[t * 5 + o]));
        }
        value[t * 5 + 4] = fmaf(x.y, x.y, fmaf(x.x, x.x, value[t * 5 + 4]));
      }
    }
    fold<kHeadValues, 16>(value, lane);
    if (const int index = folded_index(lane); index >= 0) shared.warps[step & 1][warp][index] = value[0];
    __syncthreads();
    if (warp != 0) return;
    const auto slot = static_cast<int>(step % kHeadSlots);
    const uint32_t full = shared_address(&shared.full[slot]);
    if (lane == 0) barrier_expect(full, kCluster * kHeadValues * 4);
    if (lane >= kHeadValues) return;
    float total = 0;
    for (int w = 0; w < warps; ++w) total += shared.warps[step & 1][w][lane];
    const uint32_t mine = shared_address(&shared.ranks[slot][rank][lane]);
#pragma unroll
    for (uint32_t other = 0; other < kCluster; ++other) {
      store_remote(remote_address(mine, other), total, remote_address(full, other));
    }
  }

  __device__ __forceinline__ void collapse(int64_t step, int64_t batch, const HeadBatch& raw) {
    const auto slot = static_cast<int>(step % kHeadSlots);
    barrier_wait(shared_address(&shared.full[slot]), static_cast<uint32_t>(step / kHeadSlots & 1));
    const int index = min(lane, kHeadValues - 1);
    const int part = index % 5;
    float total = 0;
#pragma unroll
    for (int r = 0; r < kCluster; ++r) total += shared.ranks[slot][r][index];
    const float square = __shfl_sync(kAllLanes, total, index - part + 4);
    const float rstd = inverse_root(fmaf(square, p.inverse_flat, p.rms_eps));
    const float base = part < 4 ? p.base.data[part * p.base.stride[0]] : 0.0f;
    const float pre = sigmoid(logit_of(total, rstd, p.scale.data[0], base)) + p.pre_eps;
    const int64_t first = batch * kHeadTokens;
    if (p.pre_mix.data != nullptr && rank == 0 && warp == 0 && lane < kHeadValues && part < 4 &&
        first + index / 5 < p.tokens) {
      p.pre_mix.data[(first + index / 5) * p.pre_mix.stride[0] + part * p.pre_mix.stride[1]] = pre;
    }
    auto* out = static_cast<unsigned char*>(p.layer_input.data) + column * 2;
#pragma unroll
    for (int t = 0; t < kHeadTokens; ++t) {
      float low = 0, high = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = __shfl_sync(kAllLanes, pre, t * 5 + j);
        const float2 x = unpack_pair(raw[t][j], DeviceBf16{});
        low = fmaf(weight, x.x, low);
        high = fmaf(weight, x.y, high);
      }
      if (first + t < p.tokens) {
        *reinterpret_cast<uint32_t*>(out + (first + t) * p.layer_input.token * 2) =
            pack_pair(low, high, DeviceBf16{});
      }
    }
  }
};

template <int kCluster>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(32 * kHeadWarps, 1)
    head_cluster_kernel(const __grid_constant__ HeadParams p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __shared__ HeadShared<kCluster> shared;
  const int thread = static_cast<int>(threadIdx.x);
  HeadThread<kCluster> self{p,
                            shared,
                            thread % 32,
                            thread / 32,
                            static_cast<int>(blockDim.x) / 32,
                            blockIdx.x % kCluster,
                            (static_cast<int64_t>(blockIdx.x % kCluster) * blockDim.x + thread) * 2,
                            {}};
  if (thread < kHeadSlots) barrier_init(shared_address(&shared.full[thread]), 1);
  barrier_init_fence();
  cluster_barrier();
  allow_dependents();
  wait_for_grids();
  const int64_t batches = (p.tokens + kHeadTokens - 1) / kHeadTokens;
  const int64_t first = blockIdx.x / kCluster;
  const int64_t stride = gridDim.x / kCluster;
  const int64_t steps = first < batches ? (batches - first + stride - 1) / stride : 0;
  HeadBatch raw[3];
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    if (step < steps) load_batch(p, first + step * stride, self.column, raw[step]);
  }
  self.load_fn();
  // Step k sends batch k and collapses batch k - 1; the last step only collapses.
  for (int64_t base = 0; base <= steps; base += 3) {
#pragma unroll
    for (int phase = 0; phase < 3; ++phase) {
      const int64_t step = base + phase;
      if (step > steps) break;
      if (step < steps) self.send(step, raw[phase]);
      if (step > 0) self.collapse(step - 1, first + (step - 1) * stride, raw[(phase + 2) % 3]);
      if (step + 2 < steps) load_batch(p, first + (step + 2) * stride, self.column, raw[(phase + 2) % 3]);
    }
  }
#endif
}

}  // namespace fmhc::cuda
