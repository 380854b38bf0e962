// What the decode kernels take; T <= kMaxTokens.
#pragma once

#include <cstdint>

#include "backends/cuda/one_launch.h"

namespace fmhc::cuda::decode {

struct Params : OneLaunchParams {
  const void* residual;         // [T, 4, H]
  const void* sublayer_output;  // [T, H]; seam
  const float* fn;              // [24, 4H]
  void* residual_out;           // [T, 4, H]; seam; may be residual
  void* state;
  int32_t group_tokens;  // of one token group
  int32_t
      weights_first;  // fn is read before the dependency wait: pays if the predecessor lets us start early
  int32_t norm_weight_bf16;
};

}  // namespace fmhc::cuda::decode
