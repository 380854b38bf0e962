// project for any number of streams, hidden size, storage and strides, with fp32 multiply-adds on fn as it is
// given. A CTA takes one slice of K and kTokens tokens; a warp owns every eighth logit, its lanes share the
// columns. The order of the additions follows the slice alone: a token's bits depend on nothing else.
#pragma once

#include "backends/cuda/common/reduce.cuh"
#include "backends/cuda/common/slices.cuh"
#include "backends/cuda/common/storage.cuh"
#include "backends/cuda/params.h"

namespace fmhc::cuda {

inline constexpr int kGenericTokens = 4;
inline constexpr int kGenericWarps = 8;
inline constexpr int kGenericChunk = 256;   // columns in shared memory
inline constexpr int kGenericOutputs = 11;  // a warp's share of at most 80 logits and the square sum

template <typename T>
__global__ void __launch_bounds__(32 * kGenericWarps)
    project_generic_kernel(const __grid_constant__ ProjectParams p) {
  __shared__ float tile[kGenericTokens][kGenericChunk];
  allow_dependents();
  wait_for_grids();
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int64_t flat = p.hidden * p.streams;
  const Range<int64_t> slice = slice_columns(flat, p.splits, static_cast<int>(blockIdx.y));
  const int outputs = p.logits + 1;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kGenericTokens; first < p.tokens;
       first += static_cast<int64_t>(gridDim.x) * kGenericTokens) {
    float sum[kGenericOutputs][kGenericTokens] = {};
    for (int64_t begin = slice.begin; begin < slice.end; begin += kGenericChunk) {
      __syncthreads();
      const int64_t column = begin + threadIdx.x;
      const bool inside = column < slice.end;
      const int64_t stream = inside ? column / p.hidden : 0;
      for (int t = 0; t < kGenericTokens; ++t) {
        float value = 0;
        if (inside && first + t < p.tokens) {
          value = widen(static_cast<const T*>(
              p.residual.data)[(first + t) * p.residual.token + stream * p.residual.stream +
                               (column - stream * p.hidden)]);
        }
        tile[t][threadIdx.x] = value;
      }
      __syncthreads();
#pragma unroll
      for (int index = 0; index < kGenericOutputs; ++index) {
        const int output = warp + index * kGenericWarps;
        if (output >= outputs) break;
        const float* row = p.fn + output * p.fn_row + begin;
        for (int c = lane; c < kGenericChunk && begin + c < slice.end; c += 32) {
          const float weight = output < p.logits ? row[c] : 0.0f;
#pragma unroll
          for (int t = 0; t < kGenericTokens; ++t) {
            const float x = tile[t][c];
            sum[index][t] = fmaf(x, output < p.logits ? weight : x, sum[index][t]);
          }
        }
      }
    }
#pragma unroll
    for (int index = 0; index < kGenericOutputs; ++index) {
      const int output = warp + index * kGenericWarps;
      if (output >= outputs) break;
#pragma unroll
      for (int t = 0; t < kGenericTokens; ++t) {
        const float total = warp_sum(sum[index][t]);
        if (lane != 0 || first + t >= p.tokens) continue;
        if (output < p.logits) {
          p.out.dot[blockIdx.y * p.out.dot_split + (first + t) * p.out.dot_token + output] = total;
        } else {
          p.out.square[blockIdx.y * p.out.square_split + (first + t) * p.out.square_token] = total;
        }
      }
    }
  }
}

}  // namespace fmhc::cuda
