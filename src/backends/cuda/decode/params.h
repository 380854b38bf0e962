// What the decode kernels take. All tensors are packed, 4 streams, bf16 storage; T <= kMaxTokens.
#pragma once

#include <cstdint>

namespace fmhc::cuda::decode {

struct Params {
  const void* residual;         // [T, 4, H]
  const void* sublayer_output;  // [T, H]; seam
  const float* post_in;         // [T, 4]; seam
  const float* comb_in;         // [T, src, dst]; seam
  const float* fn;              // [24, 4H]
  const float* scale;           // [3]
  const float* base;            // [24]
  const void* norm_weight;      // [H] bf16 or fp32; norm
  void* residual_out;           // [T, 4, H]; seam; may be residual
  void* layer_input;            // [T, H]
  float* post_mix;              // [T, 4]
  float* comb_mix;              // [T, src, dst]
  float* pre_mix;               // [T, 4] or null
  void* state;
  int32_t tokens, group_tokens;  // of all groups, of one
  int32_t
      weights_first;  // fn is read before the dependency wait: pays if the predecessor lets us start early
  int32_t norm_weight_bf16;
  int32_t rounded_norm;  // square sum of the rounded collapse (norm unfused)
  int32_t iterations;
  float rms_eps, pre_eps, sinkhorn_eps, post_mult, norm_eps;
};

}  // namespace fmhc::cuda::decode
