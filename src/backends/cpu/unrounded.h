// What post makes of a token before it is rounded to storage. Only a seeded fault takes statistics of it.
#pragma once

#if defined(FMHC_MUTANTS)

#include <vector>

#include "backends/cpu/rows.h"

namespace fmhc::cpu {

template <typename S>
void mix_unrounded_as(const Launch& launch, int64_t token, float* to) {
  const int32_t n = launch.problem.streams;
  float comb[kMaxStreams * kMaxStreams];
  float post[kMaxStreams];
  gather_small(launch.args.comb_in, token, n, comb);
  gather_small(launch.args.post_in, token, n, post);
  const auto at = [&](const fmhc_in& tensor, int32_t stream, int64_t h) {
    return widen(reinterpret_cast<const S*>(Rows(tensor).at(token, stream))[h]);
  };
  for (int32_t k = 0; k < n; ++k) {
    for (int64_t h = 0; h < launch.problem.hidden; ++h) {
      float sum = 0;
      for (int32_t j = 0; j < n; ++j) sum += comb[j * n + k] * at(launch.args.residual, j, h);
      *to++ = sum + post[k] * at(launch.args.sublayer_output, 0, h);
    }
  }
}

// `to` [streams, hidden].
inline void mix_unrounded(const Launch& launch, int64_t token, float* to) {
  if (launch.problem.residual_dtype == FMHC_BF16) return mix_unrounded_as<Bf16>(launch, token, to);
  if (launch.problem.residual_dtype == FMHC_FP16) return mix_unrounded_as<Fp16>(launch, token, to);
  mix_unrounded_as<float>(launch, token, to);
}

}  // namespace fmhc::cpu

#endif
