// Every number that a verdict depends on, each with its reason. Derivations: docs/accuracy.md, "Acceptance
// bounds".
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "flashmhc/flashmhc.h"

namespace fmhc::check {

// What a kernel declares about its arithmetic. The defaults are the weakest that is accepted.
struct Arithmetic {
  int64_t chain = 1024;  // longest chain of dependent additions in a sum over K or H: per lane, tree, slices
  bool truncating_accumulator = false;  // tensor cores: an addition loses up to a whole unit, not half of one
  bool fused = true;                    // multiply-adds round once; only the yardstick of fp32 storage asks
  double exp_ulps = 0;                  // error of exp beyond 2 ulp, in ulps times |logit|
};

// What the kernel of that name declares for sums over `columns`.
Arithmetic arithmetic_of(const std::string& kernel, int64_t columns);

// One numerics class of the projection.
struct ClassLimits {
  double product;    // relative error of one product R * fn
  double dot_norm;   // relative norm of the error of dot_mix
  double dot_gain;   // |<got, wanted> / <wanted, wanted> - 1|: a biased rounding of fn shows here
  double logit_max;  // largest error of a logit, in standard deviations of the logits
  double post_max;   // largest error of post_mix at a standard deviation of 1 and post_mult 2
  double comb_max;   // largest error of comb_mix at a standard deviation of 1
};
const ClassLimits& class_limits(int32_t projection);

// Roundoff of the coefficients' format relative to fp32's: 1, or 2^-29 with an fp64 residual.
double roundoff_scale(int32_t residual_dtype);

inline constexpr double kUnit = 0x1p-24;  // roundoff of fp32
inline constexpr double kSigmoidSlope = 0.25;
// What sigmoid and its neighbours add: exp to 2 ulp, an IEEE division, one addition or product.
inline constexpr double kSigmoidTail = 3e-7;
// What the Sinkhorn rounds add: every step renormalises, so the error does not grow with the rounds.
inline constexpr double kSinkhornTail = 1e-6;
inline constexpr double kColumnSum = 1e-6;
// Largest gain, in the maximum norm, of the map from logits to comb_mix.
double sinkhorn_gain(int32_t streams, int32_t iters);

// Roundings of the RMS factor: mean, eps, reciprocal square root to 2 ulp, products with the dot and scale.
inline constexpr double kLogitRoundings = 4;
// Of the RMSNorm: reciprocal square root to 2 ulp, two products.
inline constexpr double kNormRoundings = 4;

inline constexpr double kSignDeviations = 6;    // two-sided chance 2e-9 for an unbiased rounding
inline constexpr double kRmsRatio = 1.01;       // of the error to that of correct rounding, 16-bit storage
inline constexpr double kPlainRmsRatio = 1.1;   // to that of the plain fp32 chain, fp32 storage
inline constexpr double kSquareSumBias = 1e-6;  // mean signed relative error of sqrsum
// Share of elements that differ from the correctly rounded result where terms do not cancel: fp32 chains
// measure 3e-5 in bf16; a format of d digits has 2^(d-8) times as many boundaries.
double misrounded_share(int32_t dtype);
inline constexpr double kNoCancellation = 0.125;  // |result| to the sum of its terms' magnitudes
// Fewest elements on which a ratio, a norm or a gain says something.
inline constexpr int64_t kFewestForRatio = 1024;
inline constexpr int64_t kFewestForNorm = 64;

}  // namespace fmhc::check
