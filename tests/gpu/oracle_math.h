// The operators once more, in double, one output an index, written from docs/operators.md apart from the
// library. Every value comes with the range in which a kernel's result may lie: see Bounds for where the
// numbers come from.
#pragma once

#include "parallel.cuh"
#include "slots.h"

namespace fmhc_gpu {

inline constexpr int kMaxStreams = 8;

// What a kernel may lose. `unit` is half an ulp of the arithmetic; the projection's error is random and grows
// with the root of the sum of squared products (kappa), plus a share of the sum itself for accumulators that
// truncate.
struct Bounds {
  double unit = 0x1p-24;
  double kappa = 4e-6;  // F; F2 2e-5; R 1.5e-3
  double dot_relative = 4e-6;
  double square_relative = 4e-6;
  double root_relative = 1.5e-6;
  double mix_tail = 3e-7;  // sigmoid and storage, fp32
  double comb_tail = 1e-6;
  double comb_gain = 0.65;                 // largest gain of the Sinkhorn map, infinity norm, four streams
  double mix_terms = 5, update_terms = 6;  // units lost by the collapse and by post, of the terms' magnitudes

  // For double arithmetic that is only stored in fp32: what the reference backend must reach.
  static Bounds strict() {
    Bounds bounds;
    bounds.unit = 0x1p-48;
    bounds.kappa = bounds.dot_relative = 6.1e-8;
    bounds.square_relative = 6.1e-8;
    bounds.root_relative = 1e-12;
    bounds.mix_tail = 6.1e-8;
    bounds.comb_tail = 6.1e-8;
    return bounds;
  }
  // Sums of small integers are exact in fp32 in any order.
  void exact_projection() { kappa = dot_relative = square_relative = 0; }
};

// The rows that are checked: all, or the first and the last ones of a large case.
struct Rows {
  int64_t tokens = 0, count = 0, head = 0;
  FMHC_HD int64_t operator()(int64_t i) const { return i < head ? i : tokens - count + i; }
};

struct Partial {
  double sum, squares;
};

struct Coefficients {
  double pre[kMaxStreams], pre_slack[kMaxStreams];
  double post[kMaxStreams], post_slack[kMaxStreams];
  double comb[kMaxStreams * kMaxStreams], comb_slack;
};

struct Range {
  double value, low, high;
};

// All that the functors need, by value.
struct Oracle {
  fmhc_problem problem;
  Bounds bounds;
  Rows rows;
  int64_t splits;
  int chunks;  // of a long sum, for parallelism alone
  View view[kSlots];
  View streams;  // what is collapsed and projected: residual, or the new residual of seam
  View before;   // the streams before post: residual, or a copy of it in the in-place form
  Partial* partial;
  Coefficients* coefficients;
  Range* squares;  // [rows][chunks] of the norm

  FMHC_HD int n() const { return problem.streams; }
  FMHC_HD int logits() const { return problem.op == FMHC_HEAD ? n() : n() * (2 + n()); }
  FMHC_HD int64_t flat() const { return problem.hidden * n(); }
  FMHC_HD double storage(double value) const { return round_to_storage(value, problem.residual_dtype); }
};

// Partial sums of the projection: index = (row, output, chunk); the output after the last is the square sum.
struct ProjectChunk {
  Oracle o;
  FMHC_HD void operator()(int64_t index) const {
    const int64_t chunk = index % o.chunks;
    const int64_t output = index / o.chunks % (o.logits() + 1);
    const int64_t t = o.rows(index / o.chunks / (o.logits() + 1));
    const int64_t begin = o.flat() * chunk / o.chunks;
    const int64_t end = o.flat() * (chunk + 1) / o.chunks;
    int64_t j = begin / o.problem.hidden;
    int64_t h = begin % o.problem.hidden;
    Partial sum{0, 0};
    for (int64_t c = begin; c < end; ++c) {
      const double x = load(o.streams, o.streams.at(t, j, h));
      const double term = output == o.logits() ? x * x : x * load(o.view[kFn], o.view[kFn].at(output, c));
      sum.sum += term;
      sum.squares += term * term;
      if (++h == o.problem.hidden) {
        h = 0;
        ++j;
      }
    }
    o.partial[index] = sum;
  }
};

FMHC_HD inline Range projected(const Oracle& o, int64_t row, int output) {
  Partial sum{0, 0};
  for (int chunk = 0; chunk < o.chunks; ++chunk) {
    const Partial& part = o.partial[(row * (o.logits() + 1) + output) * o.chunks + chunk];
    sum.sum += part.sum;
    sum.squares += part.squares;
  }
  const double slack = output == o.logits()
                           ? o.bounds.square_relative * sum.sum
                           : o.bounds.kappa * sqrt(sum.squares) + o.bounds.dot_relative * fabs(sum.sum);
  return {sum.sum, sum.sum - slack, sum.sum + slack};
}

// The partials that finish was given, added up; a fp32 chain over them may lose a unit a step.
FMHC_HD inline Range given_sum(const Oracle& o, int64_t t, int output) {
  double sum = 0;
  double magnitude = 0;
  for (int64_t s = 0; s < o.splits; ++s) {
    const double part = output == o.logits() ? load(o.view[kSqrsumIn], o.view[kSqrsumIn].at(s, t))
                                             : load(o.view[kDotMixIn], o.view[kDotMixIn].at(s, t, output));
    sum += part;
    magnitude += fabs(part);
  }
  const double slack = (static_cast<double>(o.splits) + 2) * o.bounds.unit * magnitude;
  return {sum, sum - slack, sum + slack};
}

FMHC_HD inline void sinkhorn(double* a, int n, int iters, double eps) {
  for (int j = 0; j < n; ++j) {
    double top = a[j * n];
    for (int k = 1; k < n; ++k) top = fmax(top, a[j * n + k]);
    double sum = 0;
    for (int k = 0; k < n; ++k) sum += a[j * n + k] = exp(a[j * n + k] - top);
    for (int k = 0; k < n; ++k) a[j * n + k] = a[j * n + k] / sum + eps;
  }
  for (int iter = 0; iter < iters; ++iter) {
    for (int j = 0; iter > 0 && j < n; ++j) {
      double sum = eps;
      for (int k = 0; k < n; ++k) sum += a[j * n + k];
      for (int k = 0; k < n; ++k) a[j * n + k] /= sum;
    }
    for (int k = 0; k < n; ++k) {
      double sum = eps;
      for (int j = 0; j < n; ++j) sum += a[j * n + k];
      for (int j = 0; j < n; ++j) a[j * n + k] /= sum;
    }
  }
}

FMHC_HD inline double sigmoid(double v) {
  return 1 / (1 + exp(-v));
}

struct CoefficientsOfRow {
  Oracle o;
  FMHC_HD void operator()(int64_t row) const {
    const bool finish = o.problem.op == FMHC_FINISH;
    const int64_t t = o.rows(row);
    const auto sum = [&](int output) { return finish ? given_sum(o, t, output) : projected(o, row, output); };
    const fmhc_consts& consts = o.problem.consts;
    const Range square = sum(o.logits());
    const double mean = square.value / static_cast<double>(o.flat()) + static_cast<double>(consts.rms_eps);
    const double root = 1 / sqrt(mean);
    const double square_slack = square.value > 0 ? (square.high - square.value) / square.value : 0;
    const double root_slack = o.bounds.root_relative + 0.5 * square_slack;
    const int n = o.n();
    Coefficients& c = o.coefficients[row];
    double worst = 0;
    for (int output = 0; output < o.logits(); ++output) {
      const Range dot = sum(output);
      const int group = output < n ? 0 : output < 2 * n ? 1 : 2;
      const double scale = load(o.view[kScale], o.view[kScale].at(group));
      const double scaled = dot.value * root * scale;
      const double z = scaled + load(o.view[kBase], o.view[kBase].at(output));
      const double slack = fabs(scale) * root * (dot.high - dot.value) + fabs(scaled) * root_slack +
                           4 * o.bounds.unit * (fabs(z) + fabs(scaled));
      if (group == 0) {
        c.pre[output] = sigmoid(z) + static_cast<double>(consts.pre_eps);
        c.pre_slack[output] = 0.25 * slack + o.bounds.mix_tail;
      } else if (group == 1) {
        const double factor = static_cast<double>(consts.post_mult);
        c.post[output - n] = factor * sigmoid(z);
        c.post_slack[output - n] = fabs(factor) * (0.25 * slack + o.bounds.mix_tail);
      } else {
        c.comb[output - 2 * n] = z;
        worst = fmax(worst, slack);
      }
    }
    if (o.problem.op == FMHC_HEAD) return;
    sinkhorn(c.comb, n, consts.sinkhorn_iters, static_cast<double>(consts.sinkhorn_eps));
    c.comb_slack = o.bounds.comb_gain * worst + o.bounds.comb_tail;
  }
};

// The exact layer input before any norm, and where an fp32 chain may land.
FMHC_HD inline Range collapse(const Oracle& o, int64_t row, int64_t h) {
  const int64_t t = o.rows(row);
  double y = 0;
  double slack = 0;
  for (int j = 0; j < o.n(); ++j) {
    const double x = load(o.streams, o.streams.at(t, j, h));
    double weight = 1.0 / o.n();
    double weight_slack = 0;
    if (o.problem.carried_pre != 0) {
      weight = load(o.view[kPreIn], o.view[kPreIn].at(t, j));
    } else if (o.problem.op != FMHC_CONTRACT) {
      weight = o.coefficients[row].pre[j];
      weight_slack = o.coefficients[row].pre_slack[j];
    }
    y += weight * x;
    slack += (o.bounds.mix_terms * o.bounds.unit * fabs(weight) + weight_slack) * fabs(x);
  }
  return {y, y - slack, y + slack};
}

// Square sums of a row's chunk, over the values that the norm mode looks at.
struct NormChunk {
  Oracle o;
  FMHC_HD void operator()(int64_t index) const {
    const int64_t row = index / o.chunks;
    const int64_t chunk = index % o.chunks;
    const bool rounded = o.problem.norm == FMHC_NORM_UNFUSED;
    Range sum{0, 0, 0};
    const int64_t end = o.problem.hidden * (chunk + 1) / o.chunks;
    for (int64_t h = o.problem.hidden * chunk / o.chunks; h < end; ++h) {
      Range y = collapse(o, row, h);
      if (rounded) y = {o.storage(y.value), o.storage(y.low), o.storage(y.high)};
      const double a = y.low * y.low;
      const double b = y.high * y.high;
      sum.value += y.value * y.value;
      sum.low += y.low <= 0 && y.high >= 0 ? 0 : fmin(a, b);
      sum.high += fmax(a, b);
    }
    o.squares[index] = sum;
  }
};

}  // namespace fmhc_gpu
