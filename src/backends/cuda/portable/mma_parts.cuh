// The projection on tensor cores: R is exact in bf16, fn comes in two or three bf16 pieces, so a product R *
// fn is two or three plain products. The columns of a 32-column block are dealt to the positions of two k16
// steps so that a lane holds eight neighbouring columns of its two rows: fragments come straight from 16-byte
// loads of R and of the packed fn. Tensor cores cut their sums instead of rounding them, therefore a chain is
// at most four steps long before it is added to an fp32 register with rounding.
#pragma once

#include "backends/cuda/common/ptx.cuh"
#include "backends/cuda/common/reduce.cuh"
#include "backends/cuda/common/slices.cuh"
#include "backends/cuda/common/storage.cuh"
#include "backends/cuda/params.h"

namespace fmhc::cuda {

inline constexpr int kQuarters = 4;  // parts of a slice, each summed by one warp, added in ascending order

// A warp's sums over its columns for 16 tokens: dots of rows g and g + 8 (g = lane / 4), and their square
// sums.
template <int kTiles>
struct RowSums {
  float dot[kTiles][4] = {};
  float square[2] = {};
};

__device__ __forceinline__ float square_of(const uint4& raw, float sum) {
  float x[8];
  Vec<DeviceBf16>::unpack(raw, x);
#pragma unroll
  for (int c = 0; c < 8; ++c) sum = fmaf(x[c], x[c], sum);
  return sum;
}

// Chains of up to four steps: the first pieces of fn apart from the others, which are smaller by 2^-8.
template <int kPieces, int kTiles>
struct Chains {
  float first[kTiles][4] = {};
  float rest[kTiles][4] = {};

  // One block of 32 columns: `upper` row g, `lower` row g + 8; `weights` is this lane's place in the packed
  // block.
  __device__ __forceinline__ void add_block(const uint4& upper, const uint4& lower,
                                            const unsigned char* weights) {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const uint4 b = *reinterpret_cast<const uint4*>(weights + (piece * kTiles + tile) * 512);
        float(&c)[4] = piece == 0 ? first[tile] : rest[tile];
        mma_bf16(c, upper.x, lower.x, upper.y, lower.y, b.x, b.y);
        mma_bf16(c, upper.z, lower.z, upper.w, lower.w, b.z, b.w);
      }
    }
  }

  __device__ __forceinline__ void flush(RowSums<kTiles>& sums) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        sums.dot[tile][c] += first[tile][c] + rest[tile][c];
        first[tile][c] = rest[tile][c] = 0;
      }
    }
  }
};

// Where warps leave their sums and the CTA adds the quarters. Two buffers, so that one barrier a tile is
// enough.
template <int kTiles>
struct Exchange {
  static constexpr int kRow = kTiles * 8 + 2;

  float* buffer;
  int rows;  // 16 a group of four warps

  __device__ __forceinline__ float* row(int parity, int quarter, int index) const {
    return buffer + ((parity * kQuarters + quarter) * rows + index) * kRow;
  }

  // Called by the whole CTA, for the tokens from `first` up to `end` of its group.
  __device__ __forceinline__ void combine(int parity, RowSums<kTiles>& sums, const ProjectParams& p,
                                          int slice, int first, int end) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float square = sums.square[half];
      square += __shfl_xor_sync(kAllLanes, square, 1);
      square += __shfl_xor_sync(kAllLanes, square, 2);
      float* mine = row(parity, warp % kQuarters, warp / kQuarters * 16 + half * 8 + lane / 4);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        *reinterpret_cast<float2*>(mine + tile * 8 + lane % 4 * 2) = {sums.dot[tile][2 * half],
                                                                      sums.dot[tile][2 * half + 1]};
      }
      if (lane % 4 == 0) mine[kTiles * 8] = square;
    }
    __syncthreads();
    const int outputs = p.logits + 1;
    const int64_t group = blockIdx.y * p.group_tokens;
    for (int index = static_cast<int>(threadIdx.x); index < rows * outputs;
         index += static_cast<int>(blockDim.x)) {
      const int token = index / outputs;
      const int output = index - token * outputs;
      if (first + token >= end) break;
      const int column = output < p.logits ? output : kTiles * 8;
      float total = row(parity, 0, token)[column];
#pragma unroll
      for (int quarter = 1; quarter < kQuarters; ++quarter) total += row(parity, quarter, token)[column];
      if (output < p.logits) {
        p.out.dot[slice * p.out.dot_split + (group + first + token) * p.out.dot_token + output] = total;
      } else {
        p.out.square[slice * p.out.square_split + (group + first + token) * p.out.square_token] = total;
      }
    }
  }
};

// fn [N, K] fp32 to fragments: packed[block of 32 columns][piece][tile of 8 logits][lane] of 16 bytes.
__global__ void __launch_bounds__(256) pack_kernel(const __grid_constant__ PackParams p) {
  const int64_t work = p.flat / 32 * p.tiles * 32;
  for (int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; index < work;
       index += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    const int lane = static_cast<int>(index % 32);
    const int tile = static_cast<int>(index / 32 % p.tiles);
    const int64_t block = index / 32 / p.tiles;
    const int logit = tile * 8 + lane / 4;
    uint16_t piece[8][3];
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const float value = logit < p.logits ? p.fn[logit * p.fn_row + block * 32 + lane % 4 * 8 + c] : 0.0f;
      split_weight(value, piece[c]);
    }
    auto* out = static_cast<uint4*>(p.packed) + block * p.pieces * p.tiles * 32 + tile * 32 + lane;
#pragma unroll
    for (int part = 0; part < 3; ++part) {
      if (part >= p.pieces) break;
      uint32_t word[4];
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        word[pair] = piece[2 * pair][part] | static_cast<uint32_t>(piece[2 * pair + 1][part]) << 16;
      }
      out[part * p.tiles * 32] = {word[0], word[1], word[2], word[3]};
    }
  }
}

// Between the packing and whatever follows: starts only when the packing is complete, so that a dependent
// launch behind it may read packed weights before it waits.
__global__ void fence_kernel() {}

}  // namespace fmhc::cuda
