// What the one-launch families, decode and cluster, take alike. All tensors are packed, 4 streams, bf16
// storage.
#pragma once

#include <cstdint>

#include "kernels/entry.h"

namespace fmhc::cuda {

struct OneLaunchParams {
  const float* post_in;     // [T, 4]; seam
  const float* comb_in;     // [T, src, dst]; seam
  const float* scale;       // [3]
  const float* base;        // [24]
  const void* norm_weight;  // [H]; norm
  void* layer_input;        // [T, H]
  float* post_mix;          // [T, 4]
  float* comb_mix;          // [T, src, dst]
  float* pre_mix;           // [T, 4] or null
  int32_t tokens;
  int32_t rounded_norm;  // square sum of the rounded collapse (norm unfused)
  int32_t iterations;
  float rms_eps, pre_eps, sinkhorn_eps, post_mult, norm_eps;
};

OneLaunchParams one_launch_params(const Launch& launch);

}  // namespace fmhc::cuda
