// What is compared: one functor an output, from the oracle's stages to a Detail an element.
#pragma once

#include "oracle_math.h"

namespace fmhc_gpu {

struct CheckInput {
  Oracle o;
  FMHC_HD Detail detail(int64_t index) const {
    const int64_t row = index / o.problem.hidden;
    const int64_t h = index % o.problem.hidden;
    const int64_t t = o.rows(row);
    const double got = load(o.view[kLayerInput], o.view[kLayerInput].at(t, h));
    const Range y = collapse(o, row, h);
    if (o.problem.norm == FMHC_NORM_NONE) {
      return {got,       y.value,         o.storage(y.low), o.storage(y.high), o.storage(y.value),
              {t, h, 0}, y.high - y.value};
    }
    Range sum{0, 0, 0};
    for (int chunk = 0; chunk < o.chunks; ++chunk) {
      const Range& part = o.squares[row * o.chunks + chunk];
      sum = {sum.value + part.value, sum.low + part.low, sum.high + part.high};
    }
    const double hidden = static_cast<double>(o.problem.hidden);
    const double eps = static_cast<double>(o.problem.consts.norm_eps);
    const double slack = o.bounds.root_relative;
    const double w = load(o.view[kNormWeight], o.view[kNormWeight].at(h));
    const double least = w * (1 - slack) / sqrt(sum.high / hidden + eps);
    const double most = w * (1 + slack) / sqrt(sum.low / hidden + eps);
    const double want = o.storage(y.value) * w / sqrt(sum.value / hidden + eps);
    const double a = o.storage(y.low) * least;
    const double b = o.storage(y.low) * most;
    const double c = o.storage(y.high) * least;
    const double d = o.storage(y.high) * most;
    return {got,
            want,
            o.storage(fmin(fmin(a, b), fmin(c, d))),
            o.storage(fmax(fmax(a, b), fmax(c, d))),
            o.storage(want),
            {t, h, 0},
            fmax(fmax(fmax(a, b), fmax(c, d)) - want, want - fmin(fmin(a, b), fmin(c, d)))};
  }
};

struct CheckUpdate {
  Oracle o;
  FMHC_HD Detail detail(int64_t index) const {
    const int64_t h = index % o.problem.hidden;
    const int64_t k = index / o.problem.hidden % o.n();
    const int64_t t = o.rows(index / o.problem.hidden / o.n());
    const double got = load(o.view[kResidualOut], o.view[kResidualOut].at(t, k, h));
    double sum = load(o.view[kPostIn], o.view[kPostIn].at(t, k)) *
                 load(o.view[kSublayerOutput], o.view[kSublayerOutput].at(t, h));
    double magnitude = fabs(sum);
    for (int j = 0; j < o.n(); ++j) {
      const double term =
          load(o.view[kCombIn], o.view[kCombIn].at(t, j, k)) * load(o.before, o.before.at(t, j, h));
      sum += term;
      magnitude += fabs(term);
    }
    const double slack = o.bounds.update_terms * o.bounds.unit * magnitude;
    return {got, sum, o.storage(sum - slack), o.storage(sum + slack), o.storage(sum), {t, k, h}, slack};
  }
};

// What a plain fp32 chain makes of post: the mix in order, the product last.
struct PlainUpdate {
  Oracle o;
  FMHC_HD Detail detail(int64_t index) const {
    Detail d = CheckUpdate{o}.detail(index);
    const int64_t h = index % o.problem.hidden;
    const int64_t k = index / o.problem.hidden % o.n();
    const int64_t t = o.rows(index / o.problem.hidden / o.n());
    float sum = 0;
    for (int j = 0; j < o.n(); ++j) {
      sum = fmaf(static_cast<float>(load(o.view[kCombIn], o.view[kCombIn].at(t, j, k))),
                 static_cast<float>(load(o.before, o.before.at(t, j, h))), sum);
    }
    sum = fmaf(static_cast<float>(load(o.view[kPostIn], o.view[kPostIn].at(t, k))),
               static_cast<float>(load(o.view[kSublayerOutput], o.view[kSublayerOutput].at(t, h))), sum);
    d.got = static_cast<double>(sum);
    return d;
  }
};

struct CheckExpand {
  Oracle o;
  FMHC_HD Detail detail(int64_t index) const {
    const int64_t h = index % o.problem.hidden;
    const int64_t k = index / o.problem.hidden % o.n();
    const int64_t t = o.rows(index / o.problem.hidden / o.n());
    const double got = load(o.view[kResidualOut], o.view[kResidualOut].at(t, k, h));
    const double want = load(o.view[kResidual], o.view[kResidual].at(t, h));
    return {got, want, want, want, want, {t, k, h}};
  }
};

// dot_mix with its partials added up; the output after the last is sqrsum.
struct CheckProject {
  Oracle o;
  bool squares;
  FMHC_HD Detail detail(int64_t index) const {
    const int outputs = squares ? 1 : o.logits();
    const int64_t row = index / outputs;
    const int output = squares ? o.logits() : static_cast<int>(index % outputs);
    const int64_t t = o.rows(row);
    double got = 0;
    for (int64_t s = 0; s < o.splits; ++s) {
      got += squares ? load(o.view[kSqrsum], o.view[kSqrsum].at(s, t))
                     : load(o.view[kDotMix], o.view[kDotMix].at(s, t, output));
    }
    const Range want = projected(o, row, output);
    return {got, want.value, want.low, want.high, got, {t, output, 0}};
  }
};

// pre_mix, post_mix (columns n) or comb_mix (columns n*n).
struct CheckMix {
  Oracle o;
  SlotId slot;
  FMHC_HD Detail detail(int64_t index) const {
    const int n = o.n();
    const int columns = slot == kCombMix ? n * n : n;
    const int64_t row = index / columns;
    const int column = static_cast<int>(index % columns);
    const int64_t t = o.rows(row);
    const Coefficients& c = o.coefficients[row];
    const View& view = o.view[slot];
    const double got = load(view, slot == kCombMix ? view.at(t, column / n, column % n) : view.at(t, column));
    const double want = slot == kCombMix ? c.comb[column] : slot == kPreMix ? c.pre[column] : c.post[column];
    const double slack = slot == kCombMix  ? c.comb_slack
                         : slot == kPreMix ? c.pre_slack[column]
                                           : c.post_slack[column];
    const double low = slot == kCombMix ? fmax(want - slack, 0.0) : want - slack;
    return {got, want, low, want + slack, got, {t, column, 0}};
  }
};

// Column sums of comb_mix: the last Sinkhorn step fixes them whatever the logits were.
struct CheckColumns {
  Oracle o;
  FMHC_HD Detail detail(int64_t index) const {
    const int n = o.n();
    const int64_t row = index / n;
    const int k = static_cast<int>(index % n);
    const int64_t t = o.rows(row);
    double got = 0;
    double want = 0;
    for (int j = 0; j < n; ++j) {
      got += load(o.view[kCombMix], o.view[kCombMix].at(t, j, k));
      want += o.coefficients[row].comb[j * n + k];
    }
    return {got, want, want - 1e-6, want + 1e-6, got, {t, k, 0}};
  }
};

// Written at all, and not NaN: for the rows that are not compared.
struct CheckFinite {
  View view;
  FMHC_HD Detail detail(int64_t index) const {
    const double got = load(view, view.offset(index));
    return {got, got, -1e300, 1e300, got, {index, 0, 0}};
  }
};

}  // namespace fmhc_gpu
