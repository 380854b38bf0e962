// Stage: logits of a block of tokens -> pre, post, comb. Tokens are lanes, so each one computes alone.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/coefficients.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/stages.h"
#include "backends/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fmhc::cpu::HWY_NAMESPACE {
namespace {

// kLanes tokens. kStreams is 4, or 0 for any number.
template <int kStreams>
struct Lanes {
  static constexpr int kMost = kStreams != 0 ? kStreams : kMaxStreams;
  const CoefficientBlock& block;
  const int32_t streams;
  const int32_t first;  // token
  V rms;                // 1 / sqrt(mean square + eps)

  HWY_INLINE Lanes(const CoefficientBlock& given, int32_t token)
      : block(given), streams(kStreams != 0 ? kStreams : given.streams), first(token) {
    const D d;
    const float parts = mutant(Mutant::kRmsOverHidden) ? static_cast<float>(block.streams) : 1.0f;
    const V mean = hn::Div(load(block.sqrsum + first), hn::Set(d, block.width / parts));
    const V eps = hn::Set(d, block.consts.rms_eps);
    V root = hn::Sqrt(hn::Add(mean, eps));
    if (mutant(Mutant::kRmsEpsOutsideRoot)) root = hn::Add(hn::Sqrt(mean), eps);
    rms = hn::Div(hn::Set(d, 1.0f), root);
  }

  HWY_INLINE int32_t count() const { return kStreams != 0 ? kStreams : streams; }

  HWY_INLINE V logit(int32_t index, float scale) const {
    const V mix = hn::Mul(load(block.dot + index * kBlockTokens + first), rms);
    return hn::MulAdd(mix, hn::Set(D(), scale), hn::Set(D(), block.base[index]));
  }

  HWY_INLINE void put(V value, float* rows, int32_t row) const {
    if (mutant(Mutant::kCoefficientsInBf16)) value = through_bf16(value);
    store(value, rows + row * kBlockTokens + first);
  }

  HWY_INLINE void make_pre() const {
    const V eps = hn::Set(D(), mutant(Mutant::kNoPreEps) ? 0.0f : block.consts.pre_eps);
    for (int32_t j = 0; j < count(); ++j) {
      put(hn::Add(sigmoid(logit(j, block.scale[0])), eps), block.pre, j);
    }
  }

  HWY_INLINE void make_post() const {
    const V factor = hn::Set(D(), mutant(Mutant::kPostMultOne) ? 1.0f : block.consts.post_mult);
    for (int32_t j = 0; j < count(); ++j) {
      V gate = hn::Mul(factor, sigmoid(logit(count() + j, block.scale[1])));
      if (mutant(Mutant::kEpsInPost)) gate = hn::Add(gate, hn::Set(D(), block.consts.pre_eps));
      put(gate, block.post, j);
    }
  }

  // Row j through the softmax, eps added.
  HWY_INLINE void softmax(int32_t j, V* row) const {
    const int32_t n = count();
    for (int32_t k = 0; k < n; ++k) row[k] = logit(n * (2 + j) + k, block.scale[2]);
    V most = row[0];
    for (int32_t k = 1; k < n; ++k) most = hn::Max(most, row[k]);
    if (mutant(Mutant::kNoRowMaximum)) most = hn::Zero(D());
    V sum = hn::Zero(D());
    for (int32_t k = 0; k < n; ++k) {
      row[k] = exp(hn::Sub(row[k], most));
      sum = hn::Add(sum, row[k]);
    }
    const V eps = hn::Set(D(), mutant(Mutant::kNoEpsAfterSoftmax) ? 0.0f : block.consts.sinkhorn_eps);
    for (int32_t k = 0; k < n; ++k) row[k] = hn::Add(hn::Div(row[k], sum), eps);
  }

  // Divides n entries by their sum plus eps.
  HWY_INLINE void balance(V* entries, int32_t stride) const {
    V sum = entries[0];
    for (int32_t i = 1; i < count(); ++i) sum = hn::Add(sum, entries[i * stride]);
    if (!mutant(Mutant::kNoEpsInDenominators)) sum = hn::Add(sum, hn::Set(D(), block.consts.sinkhorn_eps));
    for (int32_t i = 0; i < count(); ++i) entries[i * stride] = hn::Div(entries[i * stride], sum);
  }

  HWY_INLINE void balance_rows(V* comb) const {
    for (int32_t j = 0; j < count(); ++j) balance(comb + j * count(), 1);
  }

  HWY_INLINE void balance_columns(V* comb) const {
    for (int32_t k = 0; k < count(); ++k) balance(comb + k, count());
  }

  HWY_INLINE void make_comb() const {
    V comb[kMost * kMost];
    for (int32_t j = 0; j < count(); ++j) softmax(j, comb + j * count());
    balance_columns(comb);
    int32_t rounds = block.consts.sinkhorn_iters;
    if (mutant(Mutant::kOneRoundLess)) --rounds;
    if (mutant(Mutant::kOneRoundMore)) ++rounds;
    for (int32_t round = 1; round < rounds; ++round) {
      balance_rows(comb);
      balance_columns(comb);
    }
    if (mutant(Mutant::kEndsOnRows)) balance_rows(comb);
    for (int32_t i = 0; i < count() * count(); ++i) put(comb[i], block.comb, i);
  }
};

template <int kStreams>
void make_coefficients(const CoefficientBlock& block) {
  for (int32_t first = 0; first < block.tokens; first += static_cast<int32_t>(kLanes)) {
    const Lanes<kStreams> lanes(block, first);
    lanes.make_pre();
    if (block.head) continue;
    lanes.make_post();
    lanes.make_comb();
  }
}

}  // namespace

void coefficients(const CoefficientBlock& block) {
  block.streams == 4 ? make_coefficients<4>(block) : make_coefficients<0>(block);
}

}  // namespace fmhc::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
