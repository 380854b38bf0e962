// project on tensor cores, bf16 streams, hidden a multiple of 64. A CTA owns a slice of K, keeps the slice's
// fn in shared memory and walks over its group of tokens; four warps share 16 tokens, each a quarter of the
// slice. What is added in which order follows from the slice alone, so a token's bits depend on K and the
// number of slices only.
#pragma once

#include "backends/cuda/portable/mma_parts.cuh"

namespace fmhc::cuda {

// A lane's walk over the streams: 64 columns of rows g and g + 8 a step, quarter by quarter, tile by tile.
struct StreamWalk {
  const unsigned char* base;  // streams of token 0, at this lane's column
  int64_t token_bytes, stream_bytes;
  int64_t token, step_tokens, last_token;  // of row g; rows beyond the last read the last
  int begin, end, units_a_stream;          // 64-column units of the quarter
  int tiles;
  int tile = 0, unit = 0, place = 0;
  const unsigned char* row[2];  // the next columns of rows g and g + 8

  __device__ __forceinline__ void seek() {
    unit = begin;
    const int stream = begin / units_a_stream;
    place = begin - stream * units_a_stream;
    const int64_t offset = stream * stream_bytes + place * int64_t{128};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t wanted = token + tile * step_tokens + half * 8;
      row[half] = base + (wanted < last_token ? wanted : last_token) * token_bytes + offset;
    }
  }

  // Two blocks of row g, then two of row g + 8.
  __device__ __forceinline__ void fetch(uint4 (&raw)[4]) {
    if (tile >= tiles) return;
    int64_t step = 128;
    if (++place == units_a_stream) {
      place = 0;
      step += stream_bytes - units_a_stream * int64_t{128};
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      raw[2 * half] = load_stream(row[half]);
      raw[2 * half + 1] = load_stream(row[half] + 64);
      row[half] += step;
    }
    if (++unit == end) {
      ++tile;
      seek();
    }
  }
};

template <int kPieces, int kTiles, bool kStaged>
__global__ void __launch_bounds__(kStaged ? 512 : 256, 1)
    project_mma_kernel(const __grid_constant__ ProjectParams p) {
  constexpr int kUnitBytes = 2 * kPieces * kTiles * 512;  // packed fn of 64 columns
  constexpr int kDepth = 2;                               // steps in registers, one of them at work
  extern __shared__ __align__(128) unsigned char shared[];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int rows = static_cast<int>(blockDim.x) / 128 * 16;
  const int slice_index = static_cast<int>(blockIdx.x);
  const SliceRange slice = deal(p.hidden / 64 * 4, p.splits, slice_index);
  const auto units = static_cast<int>(slice.end - slice.begin);
  const auto* weights = static_cast<const unsigned char*>(p.packed) + slice.begin * kUnitBytes;
  if (kStaged) {
    for (int at = static_cast<int>(threadIdx.x) * 16; at < units * kUnitBytes;
         at += static_cast<int>(blockDim.x) * 16)
      copy_async(shared + at, weights + at);
  }
  if (p.trigger_late == 0) allow_dependents();
  wait_for_grids();
  if (p.trigger_late != 0) allow_dependents();

  const int64_t first = blockIdx.y * p.group_tokens;
  const int64_t end = min(p.tokens, first + p.group_tokens);
  const auto tiles = static_cast<int>((end - first + rows - 1) / rows);
  const SliceRange quarter = deal(units, kQuarters, warp % kQuarters);
  StreamWalk walk;
  walk.base = static_cast<const unsigned char*>(p.residual.data) + lane % 4 * 16;
  walk.token_bytes = p.residual.token * 2;
  walk.stream_bytes = p.residual.stream * 2;
  walk.token = first + warp / kQuarters * 16 + lane / 4;
  walk.step_tokens = rows;
  walk.last_token = end - 1;
  walk.begin = static_cast<int>(slice.begin + quarter.begin);
  walk.end = static_cast<int>(slice.begin + quarter.end);
  walk.units_a_stream = static_cast<int>(p.hidden / 64);
  walk.tiles = walk.begin < walk.end ? tiles : 0;
  uint4 raw[kDepth][4];
  walk.seek();
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
  int unit = static_cast<int>(quarter.begin);
  const auto last = static_cast<int>(quarter.end);
  while (tile < tiles) {
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
      if (tile >= tiles) break;
      if (unit < last) {
        const unsigned char* at = block + static_cast<int64_t>(unit) * kUnitBytes;
        chains.add_block(raw[step][0], raw[step][2], at);
        chains.add_block(raw[step][1], raw[step][3], at + kUnitBytes / 2);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          sums.square[half] = square_of(raw[step][2 * half], sums.square[half]);
          sums.square[half] = square_of(raw[step][2 * half + 1], sums.square[half]);
        }
        chains.flush(sums);
        walk.fetch(raw[step]);
        ++unit;
      }
      if (unit == last) {
        exchange.combine(tile & 1, sums, p, slice_index, first + static_cast<int64_t>(tile) * rows, end);
        sums = {};
        unit = static_cast<int>(quarter.begin);
        ++tile;
      }
    }
  }
}

}  // namespace fmhc::cuda
