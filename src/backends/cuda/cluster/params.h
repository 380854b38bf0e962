// What the cluster kernels take beside their tensor maps.
#pragma once

#include <cstdint>

#include "backends/cuda/one_launch.h"

namespace fmhc::cuda::cluster {

inline constexpr int kCtas = 16;    // of a cluster: hidden slices of a tile
inline constexpr int kTokens = 16;  // of a tile

struct Params : OneLaunchParams {
  const void* packed;              // fn as pack_cluster_kernel wrote it
  float* dot_mix;                  // [T, 24]; project
  float* sqrsum;                   // [T]; project
  int32_t tiles_each, tiles_more;  // every cluster takes tiles_each tiles, the first tiles_more one more
};

struct PackParams {
  const float* fn;  // [logits, 4H]
  int64_t fn_row;
  void* packed;
  int32_t hidden, logits;  // rows of fn; packed as 24
};

}  // namespace fmhc::cuda::cluster
