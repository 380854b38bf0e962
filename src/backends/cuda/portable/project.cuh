// project on tensor cores, hidden a multiple of 64. A CTA owns a slice of K, keeps the slice's
// fn in shared memory and walks over its group of tokens; four warps share 16 tokens, each a quarter of the
// slice. What is added in which order follows from the slice alone, so a token's bits depend on K and the
// number of slices only.
#pragma once

#include <type_traits>

#include "backends/cuda/portable/mma_parts.cuh"

namespace fmhc::cuda {

// A lane's walk over the streams: 64 columns of rows g and g + 8 a step, quarter by quarter, tile by tile.
// Sizes are read from the parameters again wherever they are needed: registers are what this kernel is short
// of.
template <typename T>
struct StreamWalk {
  static constexpr int kLoads = Operand<T>::kLoads;  // 16-byte loads of a lane's eight columns
  static constexpr int kBytes = static_cast<int>(sizeof(T));

  const ProjectParams& p;
  int row_in_group, rows, tokens;  // of row g in tile 0; tokens of the group: rows beyond read the last
  int begin, end;                  // 64-column units of the quarter
  int tiles;
  int tile = 0, unit = 0, place = 0;
  const unsigned char* row[2];  // the next columns of rows g and g + 8

  __device__ __forceinline__ void seek() {
    const auto units_a_stream = static_cast<int>(p.hidden / 64);
    const int stream = begin / units_a_stream;
    unit = begin;
    place = begin - stream * units_a_stream;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int wanted = row_in_group + tile * rows + half * 8;
      const int64_t token = blockIdx.y * p.group_tokens + min(wanted, tokens - 1);
      row[half] =
          static_cast<const unsigned char*>(p.residual.data) +
          (token * p.residual.token + stream * p.residual.stream + place * 64 + threadIdx.x % 4 * 8) * kBytes;
    }
  }

  // [row g, row g + 8][block of 32 columns][load].
  __device__ __forceinline__ void fetch(uint4 (&raw)[2][2][kLoads]) {
    if (tile >= tiles) return;
    int64_t step = 64;
    if (++place == static_cast<int>(p.hidden / 64)) {
      place = 0;
      step += p.residual.stream - p.hidden;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int block = 0; block < 2; ++block) {
#pragma unroll
        for (int load = 0; load < kLoads; ++load) {
          raw[half][block][load] = load_stream(row[half] + block * 32 * kBytes + load * 16);
        }
      }
      row[half] += step * kBytes;
    }
    if (++unit == end) {
      ++tile;
      seek();
    }
  }
};

// Threads that the registers allow: the same numbers as in geometry.cpp.
template <typename T>
inline constexpr int kProjectThreads = std::is_same_v<T, DeviceBf16> ? 512 : 256;

template <typename T, int kPieces, int kTiles, bool kStaged>
__global__ void __launch_bounds__(kStaged ? kProjectThreads<T> : 256, 1)
    project_mma_kernel(const __grid_constant__ ProjectParams p) {
  constexpr int kUnitBytes = 2 * kPieces * kTiles * 512;  // packed fn of 64 columns
  constexpr int kDepth = 2;                               // steps in registers, one of them at work
  extern __shared__ __align__(128) unsigned char shared[];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int rows = static_cast<int>(blockDim.x) / 128 * 16;
  const int slice_index = static_cast<int>(blockIdx.x);
  const auto units_a_stream = static_cast<int>(p.hidden / 64);
  const Range<int> slice = deal(units_a_stream * 4, p.splits, slice_index);
  const int units = slice.end - slice.begin;
  const auto* weights =
      static_cast<const unsigned char*>(p.packed) + static_cast<int64_t>(slice.begin) * kUnitBytes;
  if (kStaged) {
    for (int at = static_cast<int>(threadIdx.x) * 16; at < units * kUnitBytes;
         at += static_cast<int>(blockDim.x) * 16)
      copy_async(shared + at, weights + at);
  }
  if (p.trigger_late == 0) allow_dependents();

  const auto tokens = static_cast<int>(min(p.tokens - blockIdx.y * p.group_tokens, p.group_tokens));
  const int tiles = (tokens + rows - 1) / rows;
  const Range<int> quarter = deal(units, kQuarters, warp % kQuarters);
  StreamWalk<T> walk{p,
                     warp / kQuarters * 16 + lane / 4,
                     rows,
                     tokens,
                     slice.begin + quarter.begin,
                     slice.begin + quarter.end,
                     quarter.begin < quarter.end ? tiles : 0};
  walk.seek();
  wait_for_grids();
  if (p.trigger_late != 0) allow_dependents();
  uint4 raw[kDepth][2][2][Operand<T>::kLoads];
#pragma unroll
  for (int step = 0; step < kDepth; ++step) walk.fetch(raw[step]);
  if (kStaged) {
    wait_for_copies();
    __syncthreads();
  }

  const unsigned char* block = (kStaged ? shared : weights) + lane * 16;
  const Exchange<kTiles> exchange{reinterpret_cast<float*>(shared + (kStaged ? units * kUnitBytes : 0)),
                                  rows};
  RowSums<kTiles> sums;
  Chains<kPieces, kTiles> chains;
  int tile = 0;
  int unit = quarter.begin;
  while (tile < tiles) {
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
      if (tile >= tiles) break;
      if (unit < quarter.end) {
        const unsigned char* at = block + static_cast<int64_t>(unit) * kUnitBytes;
#pragma unroll
        for (int half_unit = 0; half_unit < 2; ++half_unit) {
          chains.add_block(Operand<T>(raw[step][0][half_unit]), Operand<T>(raw[step][1][half_unit]),
                           at + half_unit * kUnitBytes / 2);
#pragma unroll
          for (int load = 0; load < Operand<T>::kLoads; ++load) {
            sums.square[0] = square_of<T>(raw[step][0][half_unit][load], sums.square[0]);
            sums.square[1] = square_of<T>(raw[step][1][half_unit][load], sums.square[1]);
          }
        }
        chains.flush(sums);
        walk.fetch(raw[step]);
        ++unit;
      }
      if (unit == quarter.end) {
        exchange.combine(tile & 1, sums, p, slice_index, tile * rows, tokens);
        sums = {};
        unit = quarter.begin;
        ++tile;
      }
    }
  }
}

}  // namespace fmhc::cuda
