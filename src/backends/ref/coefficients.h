// From the projections of one token to its mixing coefficients: RMS fold, affine map, sigmoids, Sinkhorn.
// Everything is double; callers round to what they store.
#pragma once

#include "backends/ref/dispatch.h"
#include "core/tensor.h"

namespace fmhc::ref {

inline constexpr int kMaxStreams = 8;
inline constexpr int kMaxLogits = kMaxStreams * (kMaxStreams + 2);

// What the coefficients of a token depend on: the raw streams times fn, and the streams' square sum.
struct Statistics {
  double dot[kMaxLogits] = {};
  double square_sum = 0;
};

struct Coefficients {
  double pre[kMaxStreams];
  double post[kMaxStreams];
  double comb[kMaxStreams][kMaxStreams];  // [source][destination]
};

// scale [3] fp32, base [N] fp32.
Coefficients site_coefficients(const Problem& problem, const Statistics& statistics, const fmhc_in& scale,
                               const fmhc_in& base);

// The collapse weights of head alone, into pre[n]; scale [1] fp32, base [n] fp32.
void head_mix(const Problem& problem, const Statistics& statistics, const fmhc_in& scale, const fmhc_in& base,
              double* pre);

// Rounds the coefficients of token t into post_mix, comb_mix and, where it is given, pre_mix.
template <typename T>
void store_coefficients(const Launch& launch, int64_t t, const Coefficients& coefficients) {
  using Stored = StoredCoefficient<T>;
  const auto post_mix = view<Stored, 2>(launch.args.post_mix);
  const auto comb_mix = view<Stored, 3>(launch.args.comb_mix);
  const auto pre_mix = view<Stored, 2>(launch.args.pre_mix);
  for (int32_t j = 0; j < launch.problem.streams; ++j) {
    *post_mix.at(t, j) = narrow<Stored>(coefficients.post[j]);
    if (pre_mix) *pre_mix.at(t, j) = narrow<Stored>(coefficients.pre[j]);
    for (int32_t k = 0; k < launch.problem.streams; ++k) {
      *comb_mix.at(t, j, k) = narrow<Stored>(coefficients.comb[j][k]);
    }
  }
}

}  // namespace fmhc::ref
