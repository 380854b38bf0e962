// Compile-time geometry of a decode kernel and the place of a CTA in it.
#pragma once

#include "backends/cuda/decode/params.h"
#include "backends/cuda/decode/shape.h"

namespace fmhc::cuda::decode {

// kUnits: 16-column units a CTA owns of every stream. kTokens: the most tokens of a group.
template <int kHidden_, int kUnits_, int kTokens_, bool kSeam_, bool kNorm_>
struct Geometry {
  static constexpr int kHidden = kHidden_, kUnits = kUnits_, kTokens = kTokens_;
  static constexpr bool kSeam = kSeam_, kNorm = kNorm_;
  static constexpr int kFlat = 4 * kHidden;
  static constexpr int kColumns = 16 * kUnits;
  static constexpr int kSlices = (kHidden + kColumns - 1) / kColumns;
  static constexpr int kGranules = kColumns / 8;
  // Lanes that share a token in the elementwise phases.
  static constexpr int kLanesAToken = kGranules <= 4 ? 4 : kGranules <= 8 ? 8 : kGranules <= 16 ? 16 : 32;
  static constexpr int kGram = kNorm ? kGramKinds : 1;
  static constexpr int kSlicesALane = (kSlices + 31) / 32;
  // What a launch writes of the state, for every token and slice it has.
  static constexpr int kAnswers = kNorm ? 3 : 2;
  __device__ static constexpr bool writes_kind(int kind) {
    return kind < kLogitKinds + kGram || (kNorm && kind == kExactKind);
  }
  static_assert(kGranules <= 32 && kSlices <= kMaxSlices && kTokens <= 2 * kSlices && kTokens <= kMaxTokens);
};

struct Place {
  int slice, first_token, tokens;  // of the group
  int pre_token;                   // whose pre this CTA makes, if owns_pre; the mix is that of token `slice`
  bool owns_mix, owns_pre;
  int cta, ctas;
};

template <class G>
__device__ __forceinline__ Place place_of(const Params& params) {
  Place place;
  place.slice = static_cast<int>(blockIdx.x);
  place.first_token = static_cast<int>(blockIdx.y) * params.group_tokens;
  place.tokens = min(params.group_tokens, params.tokens - place.first_token);
  constexpr int kHalf = G::kSlices / 2;
  place.pre_token = place.slice >= kHalf ? place.slice - kHalf : place.slice + G::kSlices - kHalf;
  place.owns_mix = place.slice < place.tokens;
  place.owns_pre = place.pre_token < place.tokens;
  place.cta = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  place.ctas = static_cast<int>(gridDim.x * gridDim.y);
  return place;
}

}  // namespace fmhc::cuda::decode
