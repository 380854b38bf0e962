// Stages of one token: the mix of `post` and the collapse with its RMSNorm. Columns are lanes.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/rows.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/stages.h"
#include "backends/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fmhc::cpu::HWY_NAMESPACE {
namespace {

// kStreams is 4, or 0 for any number.
template <typename S, int kStreams>
struct Mix {
  static constexpr int kMost = kStreams != 0 ? kStreams : kMaxStreams;
  int32_t streams;
  V comb[kMost * kMost];
  V post[kMost];

  HWY_INLINE explicit Mix(const MixRow& row) : streams(kStreams != 0 ? kStreams : row.streams) {
    for (int32_t i = 0; i < streams * streams; ++i) {
      const bool transposed = mutant(Mutant::kCombTransposed);
      comb[i] = hn::Set(D(), row.comb[transposed ? i % streams * streams + i / streams : i]);
    }
    for (int32_t k = 0; k < streams; ++k) post[k] = hn::Set(D(), row.post[k]);
  }

  // All sources are read before the first destination is written: the row may be mixed in place.
  template <bool kTail>
  HWY_INLINE void columns(const MixRow& row, int64_t h, int64_t count) const {
    const S* from = static_cast<const S*>(row.residual) + h;
    S* to = static_cast<S*>(row.out) + h;
    const int32_t n = kStreams != 0 ? kStreams : streams;
    V source[kMost];
    for (int32_t j = 0; j < n; ++j) source[j] = load_columns<kTail>(from + j * row.stream_stride, count);
    const V z = load_columns<kTail>(static_cast<const S*>(row.sublayer_output) + h, count);
    for (int32_t k = 0; k < n; ++k) {
      V sum = hn::Zero(D());
      for (int32_t j = 0; j < n; ++j) sum = fused<S>(comb[j * n + k], source[j], sum);
      store_columns<kTail>(fused<S>(post[k], z, sum), to + k * row.out_stream_stride, count);
    }
  }
};

template <typename S, int kStreams>
void mix_streams(const MixRow& row) {
  const Mix<S, kStreams> mix(row);
  int64_t h = 0;
  for (; h + kLanes <= row.hidden; h += kLanes) mix.template columns<false>(row, h, kLanes);
  if (h < row.hidden) mix.template columns<true>(row, h, row.hidden - h);
}

template <typename S>
void mix_of(const MixRow& row) {
  row.streams == 4 ? mix_streams<S, 4>(row) : mix_streams<S, 0>(row);
}

template <typename S, int kStreams>
struct Collapse {
  static constexpr int kMost = kStreams != 0 ? kStreams : kMaxStreams;
  int32_t streams;
  V weight[kMost];

  HWY_INLINE explicit Collapse(const CollapseRow& row) : streams(kStreams != 0 ? kStreams : row.streams) {
    for (int32_t j = 0; j < streams; ++j) weight[j] = hn::Set(D(), row.weights[j]);
  }

  // Writes y and returns what its square sum is taken of.
  template <bool kTail>
  HWY_INLINE V columns(const CollapseRow& row, int64_t h, int64_t count) const {
    const S* from = static_cast<const S*>(row.residual) + h;
    S* to = static_cast<S*>(row.out) + h;
    const int32_t n = kStreams != 0 ? kStreams : streams;
    V sum = hn::Zero(D());
    for (int32_t j = 0; j < n; ++j) {
      sum = hn::MulAdd(weight[j], load_columns<kTail>(from + j * row.stream_stride, count), sum);
    }
    if (row.divisor != 1.0f) sum = hn::Div(sum, hn::Set(D(), row.divisor));
    store_columns<kTail>(sum, to, count);
    if (row.norm == FMHC_NORM_UNFUSED) return load_columns<kTail>(to, count);
    return sum;
  }
};

// Multiplies the stored row by its reciprocal root mean square and the weight.
template <typename S>
void normalise(const CollapseRow& row, float square_sum) {
  S* to = static_cast<S*>(row.out);
  const D d;
  const V mean = hn::Div(hn::Set(d, square_sum), hn::Set(d, static_cast<float>(row.hidden)));
  const V factor = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Add(mean, hn::Set(d, row.norm_eps))));
  int64_t h = 0;
  for (; h + kLanes <= row.hidden; h += kLanes) {
    store(hn::Mul(hn::Mul(load(to + h), factor), load(row.norm_weight + h)), to + h);
  }
  if (const int64_t count = row.hidden - h; count > 0) {
    const V weight = load_first(row.norm_weight + h, count);
    store_first(hn::Mul(hn::Mul(load_first(to + h, count), factor), weight), to + h, count);
  }
}

template <typename S, int kStreams>
void collapse_streams(const CollapseRow& row) {
  const Collapse<S, kStreams> collapse(row);
  V total = hn::Zero(D());
  for (int64_t begin = 0; begin < row.hidden; begin += kLeaf) {
    const int64_t end = HWY_MIN(begin + kLeaf, row.hidden);
    V leaf = hn::Zero(D());
    int64_t h = begin;
    for (; h + kLanes <= end; h += kLanes) {
      const V y = collapse.template columns<false>(row, h, kLanes);
      leaf = hn::MulAdd(y, y, leaf);
    }
    if (h < end) {
      const V y = collapse.template columns<true>(row, h, end - h);
      leaf = hn::MulAdd(y, y, leaf);
    }
    total = hn::Add(total, leaf);
  }
  if (row.norm != FMHC_NORM_NONE) normalise<S>(row, hn::GetLane(hn::SumOfLanes(D(), total)));
}

template <typename S>
void collapse_of(const CollapseRow& row) {
  row.streams == 4 ? collapse_streams<S, 4>(row) : collapse_streams<S, 0>(row);
}

}  // namespace

void mix(const MixRow& row) {
  if (row.dtype == FMHC_BF16) return mix_of<Bf16>(row);
  if (row.dtype == FMHC_FP16) return mix_of<Fp16>(row);
  mix_of<float>(row);
}

void collapse(const CollapseRow& row) {
  if (row.dtype == FMHC_BF16) return collapse_of<Bf16>(row);
  if (row.dtype == FMHC_FP16) return collapse_of<Fp16>(row);
  collapse_of<float>(row);
}

}  // namespace fmhc::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
