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

// Eight neighbouring columns of one row as bf16 pieces that add up to the stored value: one for bf16, two for
// fp16, three for fp32. Infinities and NaN go through the first piece; what is left of them is NaN at worst,
// as it should be.
template <typename T>
struct Operand;

template <>
struct Operand<DeviceBf16> {
  static constexpr int kPieces = 1;
  static constexpr int kLoads = 1;  // of 16 bytes
  uint4 piece[1];

  __device__ __forceinline__ explicit Operand(const uint4* raw) : piece{raw[0]} {}
};

template <typename T>
struct SplitOperand {
  static constexpr int kPieces = sizeof(T) == 2 ? 2 : 3;
  static constexpr int kLoads = static_cast<int>(sizeof(T)) / 2;
  uint4 piece[kPieces];

  __device__ __forceinline__ explicit SplitOperand(const uint4* raw) {
    constexpr int kWidth = Vec<T>::kWidth;
    float rest[8];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      float some[kWidth];
      Vec<T>::unpack(raw[load], some);
#pragma unroll
      for (int c = 0; c < kWidth; ++c) rest[load * kWidth + c] = some[c];
    }
#pragma unroll
    for (int index = 0; index < kPieces; ++index) {
      piece[index] = Vec<DeviceBf16>::pack(rest);
      float taken[8];
      Vec<DeviceBf16>::unpack(piece[index], taken);
#pragma unroll
      for (int c = 0; c < 8; ++c) rest[c] -= taken[c];
    }
  }
};
template <>
struct Operand<DeviceFp16> : SplitOperand<DeviceFp16> {
  using SplitOperand::SplitOperand;
};
template <>
struct Operand<float> : SplitOperand<float> {
  using SplitOperand::SplitOperand;
};

template <typename T>
__device__ __forceinline__ float square_of(const uint4& raw, float sum) {
  float x[Vec<T>::kWidth];
  Vec<T>::unpack(raw, x);
#pragma unroll
  for (int c = 0; c < Vec<T>::kWidth; ++c) sum = fmaf(x[c], x[c], sum);
  return sum;
}

// Chains of up to four steps: the first pieces of both sides apart from the others, which are smaller by
// 2^-8.
template <int kPieces, int kTiles>
struct Chains {
  float first[kTiles][4] = {};
  float rest[kTiles][4] = {};

  // One block of 32 columns: `upper` row g, `lower` row g + 8; `weights` is this lane's place in the packed
  // block. Products of pieces that are together smaller than 2^-24 are left out.
  template <typename T>
  __device__ __forceinline__ void add_block(const Operand<T>& upper, const Operand<T>& lower,
                                            const unsigned char* weights) {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const uint4 b = *reinterpret_cast<const uint4*>(weights + (piece * kTiles + tile) * 512);
#pragma unroll
        for (int part = 0; part < Operand<T>::kPieces; ++part) {
          if (part + piece > 2) continue;
          float(&c)[4] = part + piece == 0 ? first[tile] : rest[tile];
          const uint4& up = upper.piece[part];
          const uint4& low = lower.piece[part];
          mma_bf16(c, up.x, low.x, up.y, low.y, b.x, b.y);
          mma_bf16(c, up.z, low.z, up.w, low.w, b.z, b.w);
        }
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

}  // namespace fmhc::cuda
