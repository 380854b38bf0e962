// The steps that several operators share, one token at a time; every sum is double and runs in index order.
#pragma once

#include <cmath>

#include "backends/ref/coefficients.h"
#include "ops/slices.h"

namespace fmhc::ref {

// Raw dots with fn [N,K] fp32 and the square sum, over the columns of one slice of K. streams: [T,n,H].
template <typename T>
Statistics project_token(const Problem& problem, const View<const T, 3>& streams, const fmhc_in& fn,
                         int64_t t, Slice slice) {
  const auto weights = view<float, 2>(fn);
  const auto logits = static_cast<int>(logit_count(problem));
  int64_t j = slice.begin / problem.hidden;
  int64_t h = slice.begin % problem.hidden;
  Statistics sums;
  for (int64_t c = slice.begin; c < slice.end; ++c) {
    const double x = widen(*streams.at(t, j, h));
    for (int o = 0; o < logits; ++o) sums.dot[o] += x * static_cast<double>(*weights.at(o, c));
    sums.square_sum += x * x;
    if (++h == problem.hidden) {
      h = 0;
      ++j;
    }
  }
  return sums;
}

template <typename T>
Statistics project_token(const Problem& problem, const View<const T, 3>& streams, const fmhc_in& fn,
                         int64_t t) {
  return project_token(problem, streams, fn, t, {0, flat_width(problem)});
}

// residual_out[t,k,:] = sum_j comb_in[t,j,k] residual[t,j,:] + post_in[t,k] sublayer_output[t,:]. A column
// of the streams is read whole before it is written: residual_out may be residual.
template <typename T>
void post_token(const Launch& launch, int64_t t) {
  using Stored = StoredCoefficient<T>;
  const int n = launch.problem.streams;
  const auto old_streams = view<T, 3>(launch.args.residual);
  const auto sublayer = view<T, 2>(launch.args.sublayer_output);
  const auto post = view<Stored, 2>(launch.args.post_in);
  const auto comb = view<Stored, 3>(launch.args.comb_in);
  const auto new_streams = view<T, 3>(launch.args.residual_out);
  for (int64_t h = 0; h < launch.problem.hidden; ++h) {
    double column[kMaxStreams];
    for (int j = 0; j < n; ++j) column[j] = widen(*old_streams.at(t, j, h));
    const double z = widen(*sublayer.at(t, h));
    for (int k = 0; k < n; ++k) {
      double sum = 0;
      for (int j = 0; j < n; ++j) sum += static_cast<double>(*comb.at(t, j, k)) * column[j];
      *new_streams.at(t, k, h) = narrow<T>(sum + static_cast<double>(*post.at(t, k)) * z);
    }
  }
}

inline double read_weight(const fmhc_in& weight, int64_t h) {
  switch (weight.dtype) {
    case FMHC_BF16:
      return static_cast<double>(widen(*view<Bf16, 1>(weight).at(h)));
    case FMHC_FP32:
      return static_cast<double>(*view<float, 1>(weight).at(h));
    default:
      return *view<double, 1>(weight).at(h);
  }
}

// layer_input[t,:] = sum_j mix[j] streams[t,j,:], rounded; with a norm, its RMSNorm instead, made
// from the rounded row (the square sum of `engine` from the unrounded one).
template <typename T>
void collapse_token(const Launch& launch, const View<const T, 3>& streams, int64_t t, const double* mix) {
  const Problem& problem = launch.problem;
  const auto row = view<T, 2>(launch.args.layer_input);
  double square_sum = 0;
  for (int64_t h = 0; h < problem.hidden; ++h) {
    double y = 0;
    for (int j = 0; j < problem.streams; ++j) y += mix[j] * static_cast<double>(widen(*streams.at(t, j, h)));
    *row.at(t, h) = narrow<T>(y);
    const double squared = problem.norm == FMHC_NORM_ENGINE ? y : static_cast<double>(widen(*row.at(t, h)));
    square_sum += squared * squared;
  }
  if (problem.norm == FMHC_NORM_NONE) return;
  const double mean = square_sum / static_cast<double>(problem.hidden);
  const double root = std::sqrt(mean + static_cast<double>(problem.consts.norm_eps));
  for (int64_t h = 0; h < problem.hidden; ++h) {
    const double y = widen(*row.at(t, h));
    *row.at(t, h) = narrow<T>(y / root * read_weight(launch.args.norm_weight, h));
  }
}

// The weights that a V4.1 site is given, pre_in[t,:].
template <typename T>
void read_carried(const Launch& launch, int64_t t, double* mix) {
  const auto carried = view<StoredCoefficient<T>, 2>(launch.args.pre_in);
  for (int j = 0; j < launch.problem.streams; ++j) mix[j] = static_cast<double>(*carried.at(t, j));
}

// What follows the projection of a site: coefficients out, and the layer input by its own or the carried
// mix. The collapse takes the coefficients as computed, not as stored.
template <typename T>
void finish_token(const Launch& launch, const View<const T, 3>& streams, int64_t t,
                  const Statistics& statistics) {
  Coefficients coefficients =
      site_coefficients(launch.problem, statistics, launch.args.scale, launch.args.base);
  store_coefficients<T>(launch, t, coefficients);
  if (launch.problem.carried_pre != 0) read_carried<T>(launch, t, coefficients.pre);
  collapse_token(launch, streams, t, coefficients.pre);
}

}  // namespace fmhc::ref
