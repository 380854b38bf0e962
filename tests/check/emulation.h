// The plain fp32 computation of the operators with faults that can be switched on, and random calls to feed
// it.
#pragma once

#include <random>

#include "check/check.h"

namespace fmhc::check::test {

enum class Fault : uint8_t {
  kNone,
  kTruncatingStore,   // residual_out and layer_input cut off instead of rounded
  kBf16Partials,      // each lane's sum rounded to bf16
  kBf16Coefficients,  // used and reported in fp32, but rounded to bf16 before the collapse or the update
  kTf32Coefficients,
  kStaleColumn,  // one column of the output from the token before
  kTransposedComb,
  kTruncatedWeights,  // low 13 bits of fn dropped
  kPrescaledOutput,   // post * z rounded to storage before the sum
  kNormOfOther,       // the RMSNorm of the other mode
  kUnroundedNorm,     // product of the unrounded row
  kRoundedProducts,   // no fused multiply-add: legal where that is declared
};

// Outputs of pre, post, head or contract.
Tensors emulate(const Case& call, Fault fault = Fault::kNone);

struct Shape {
  int64_t tokens = 64, hidden = 512;
  int32_t streams = 4, dtype = FMHC_BF16, norm = FMHC_NORM_NONE;
};

// Normal data, logits of standard deviation near 1, base of 1.
Case random_case(int32_t op, const Shape& shape, uint32_t seed);

Options options_for(const Case& call);

}  // namespace fmhc::check::test
