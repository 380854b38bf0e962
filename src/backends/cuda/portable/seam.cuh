// The first launch of a seam: post, whose new streams are the left operand of the next site's projection
// while they are still in registers. A CTA owns a slice of the hidden columns of all four streams; otherwise
// as in project.cuh. The statistics are those of the rounded new streams.
#pragma once

#include "backends/cuda/portable/mma_parts.cuh"
#include "backends/cuda/portable/post.cuh"

namespace fmhc::cuda {

inline constexpr int kSeamTiles = 3;   // 24 logits
inline constexpr int kMixFloats = 20;  // post and comb of a token

// The mixes of the warp's 16 tokens, in shared memory of this warp alone.
__device__ __forceinline__ void stage_mixes(const PostParams& p, int64_t first, int64_t last, float* mixes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  __syncwarp();
  for (int index = lane; index < 16 * kMixFloats; index += 32) {
    const int row = index / kMixFloats;
    const int part = index - row * kMixFloats;
    const int64_t token = min(first + row, last);
    mixes[index] = part < 4 ? p.post.data[token * p.post.stride[0] + part * p.post.stride[1]]
                            : p.comb.data[token * p.comb.stride[0] + (part / 4 - 1) * p.comb.stride[1] +
                                          part % 4 * p.comb.stride[2]];
  }
  __syncwarp();
}

__device__ __forceinline__ Mix staged_mix(const float* mixes, int row) {
  const auto* four = reinterpret_cast<const float4*>(mixes + row * kMixFloats);
  return {four[0], {four[1], four[2], four[3], four[4]}};
}

// Eight columns of one token: raw streams in, rounded new streams out.
__device__ __forceinline__ void mix_eight(const Mix& mix, uint4 (&stream)[4], const uint4& raw_z) {
  uint32_t out[4][4];
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    float low[4], high[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 both = unpack_pair(word_of(stream[j], pair), DeviceBf16{});
      low[j] = both.x;
      high[j] = both.y;
    }
    const float2 z = unpack_pair(word_of(raw_z, pair), DeviceBf16{});
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      out[k][pair] = pack_pair(mix_one(mix, k, low, z.x), mix_one(mix, k, high, z.y), DeviceBf16{});
    }
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) stream[k] = {out[k][0], out[k][1], out[k][2], out[k][3]};
}

template <int kPieces, bool kStaged>
__global__ void __launch_bounds__(kStaged ? 384 : 256, 1)
    seam_mma_kernel(const __grid_constant__ SeamParams params) {
  constexpr int kBlockBytes = kPieces * kSeamTiles * 512;  // packed fn of 32 columns
  extern __shared__ __align__(128) unsigned char shared[];
  const PostParams& post = params.post;
  const ProjectParams& p = params.project;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int rows = static_cast<int>(blockDim.x) / 128 * 16;
  const int slice_index = static_cast<int>(blockIdx.x);
  const auto blocks_a_stream = static_cast<int>(p.hidden / 32);
  const Range<int> slice = deal(blocks_a_stream, p.splits, slice_index);
  const int items = slice.end - slice.begin;
  const auto* weights = static_cast<const unsigned char*>(p.packed) + slice.begin * kBlockBytes;
  const int weight_stream = (kStaged ? items : blocks_a_stream) * kBlockBytes;
  if (kStaged) {
    for (int stream = 0; stream < 4; ++stream) {
      const unsigned char* from = weights + stream * blocks_a_stream * kBlockBytes;
      unsigned char* to = shared + stream * weight_stream;
      for (int at = static_cast<int>(threadIdx.x) * 16; at < items * kBlockBytes;
           at += static_cast<int>(blockDim.x) * 16) {
        copy_async(to + at, from + at);
      }
    }
  }
  allow_dependents();

  const unsigned char* block = (kStaged ? shared : weights) + lane * 16;
  float* after_weights = reinterpret_cast<float*>(shared + (kStaged ? 4 * items * kBlockBytes : 0));
  float* mixes = after_weights + warp * 16 * kMixFloats;
  const Exchange<kSeamTiles> exchange{after_weights + static_cast<int>(blockDim.x) / 32 * 16 * kMixFloats,
                                      rows};
  const int64_t first = blockIdx.y * p.group_tokens;
  const int64_t end = min(p.tokens, first + p.group_tokens);
  const Range<int> quarter = deal(items, kQuarters, warp % kQuarters);
  const int64_t column = slice.begin * int64_t{32} + lane % 4 * 8;
  const auto* in = static_cast<const DeviceBf16*>(post.residual.data) + column;
  const auto* z = static_cast<const DeviceBf16*>(post.sublayer_output.data) + column;
  auto* out = static_cast<DeviceBf16*>(post.residual_out.data) + column;
  bool weights_ready = !kStaged;
  wait_for_grids();
  int parity = 0;
  for (int64_t tile = first; tile < end; tile += rows, parity ^= 1) {
    const int64_t warp_first = tile + warp / kQuarters * 16;
    stage_mixes(post, warp_first, end - 1, mixes);
    RowSums<kSeamTiles> sums;
    Chains<kPieces, kSeamTiles> chains;
    if (!weights_ready) {
      wait_for_copies();
      __syncthreads();
      weights_ready = true;
    }
    for (int item = quarter.begin; item < quarter.end && warp_first < end; ++item) {
      uint4 stream[2][4], raw_z[2];
      int64_t token[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        token[half] = warp_first + half * 8 + lane / 4;
        const int64_t from = min(token[half], end - 1);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          stream[half][j] =
              load_stream(in + from * post.residual.token + j * post.residual.stream + item * 32);
        }
        raw_z[half] = load_stream(z + from * post.sublayer_output.token + item * 32);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        mix_eight(staged_mix(mixes, half * 8 + lane / 4), stream[half], raw_z[half]);
        if (token[half] < end) {
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            *reinterpret_cast<uint4*>(out + token[half] * post.residual_out.token +
                                      k * post.residual_out.stream + item * 32) = stream[half][k];
          }
        }
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        chains.add_block(Operand<DeviceBf16>(&stream[0][k]), Operand<DeviceBf16>(&stream[1][k]),
                         block + k * weight_stream + item * kBlockBytes);
        sums.square[0] = square_of<DeviceBf16>(stream[0][k], sums.square[0]);
        sums.square[1] = square_of<DeviceBf16>(stream[1][k], sums.square[1]);
        if (k % 2 == 1) chains.flush(sums);
      }
    }
    exchange.combine(parity, sums, p, slice_index, static_cast<int>(tile - first),
                     static_cast<int>(end - first));
  }
}

}  // namespace fmhc::cuda
