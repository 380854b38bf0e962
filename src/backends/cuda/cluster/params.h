// What the cluster kernels take beside their tensor maps. All tensors are packed, 4 streams, bf16 storage.
#pragma once

#include <cstdint>

namespace fmhc::cuda::cluster {

inline constexpr int kCtas = 16;    // of a cluster: hidden slices of a tile
inline constexpr int kTokens = 16;  // of a tile

struct Params {
  const void* packed;       // fn as pack_cluster_kernel wrote it
  const float* scale;       // [3]
  const float* base;        // [24]
  const void* norm_weight;  // [H] bf16; norm
  const float* post_in;     // [T, 4]; seam
  const float* comb_in;     // [T, src, dst]; seam
  void* layer_input;        // [T, H]
  float* post_mix;          // [T, 4]
  float* comb_mix;          // [T, src, dst]
  float* pre_mix;           // [T, 4] or null
  int32_t tokens;
  int32_t tiles_each, tiles_more;  // every cluster takes tiles_each tiles, the first tiles_more one more
  int32_t rounded_norm;            // square sum of the rounded collapse (norm unfused)
  int32_t iterations;
  float rms_eps, pre_eps, sinkhorn_eps, post_mult, norm_eps;
};

struct PackParams {
  const float* fn;  // [24, 4H]
  int64_t fn_row;
  void* packed;
  int32_t hidden;
};

}  // namespace fmhc::cuda::cluster
