#include "backends/ref/coefficients.h"

#include <algorithm>
#include <cmath>

namespace fmhc::ref {
namespace {

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

// 1 / sqrt of the mean square over all K columns of the token, eps inside the root.
double rms_factor(const Problem& problem, double square_sum) {
  const double mean = square_sum / static_cast<double>(flat_width(problem));
  return 1.0 / std::sqrt(mean + static_cast<double>(problem.consts.rms_eps));
}

void divide_rows(int n, double eps, double (*comb)[kMaxStreams]) {
  for (int j = 0; j < n; ++j) {
    double sum = 0;
    for (int k = 0; k < n; ++k) sum += comb[j][k];
    for (int k = 0; k < n; ++k) comb[j][k] /= sum + eps;
  }
}

void divide_columns(int n, double eps, double (*comb)[kMaxStreams]) {
  for (int k = 0; k < n; ++k) {
    double sum = 0;
    for (int j = 0; j < n; ++j) sum += comb[j][k];
    for (int j = 0; j < n; ++j) comb[j][k] /= sum + eps;
  }
}

// In place: comb holds logits on entry. std::max would drop a NaN, the exponentials bring it back.
void softmax_rows(int n, double eps, double (*comb)[kMaxStreams]) {
  for (int j = 0; j < n; ++j) {
    const double most = *std::max_element(comb[j], comb[j] + n);
    double sum = 0;
    for (int k = 0; k < n; ++k) {
      comb[j][k] = std::exp(comb[j][k] - most);
      sum += comb[j][k];
    }
    for (int k = 0; k < n; ++k) comb[j][k] = comb[j][k] / sum + eps;
  }
}

void sinkhorn(const Problem& problem, double (*comb)[kMaxStreams]) {
  const int n = problem.streams;
  const auto eps = static_cast<double>(problem.consts.sinkhorn_eps);
  softmax_rows(n, eps, comb);
  divide_columns(n, eps, comb);
  for (int round = 1; round < problem.consts.sinkhorn_iters; ++round) {
    divide_rows(n, eps, comb);
    divide_columns(n, eps, comb);
  }
}

}  // namespace

Coefficients site_coefficients(const Problem& problem, const Statistics& statistics, const fmhc_in& scale,
                               const fmhc_in& base) {
  const int n = problem.streams;
  const auto scales = view<float, 1>(scale);
  const auto bases = view<float, 1>(base);
  const double factor = rms_factor(problem, statistics.square_sum);
  // Logits in the order pre, post, comb; group 0, 1, 2 has a scale each.
  const auto logit = [&](int group, int index) {
    return statistics.dot[index] * factor * static_cast<double>(*scales.at(group)) +
           static_cast<double>(*bases.at(index));
  };
  Coefficients out;
  for (int j = 0; j < n; ++j) {
    out.pre[j] = sigmoid(logit(0, j)) + static_cast<double>(problem.consts.pre_eps);
    out.post[j] = static_cast<double>(problem.consts.post_mult) * sigmoid(logit(1, n + j));
    for (int k = 0; k < n; ++k) out.comb[j][k] = logit(2, 2 * n + n * j + k);
  }
  sinkhorn(problem, out.comb);
  return out;
}

void head_mix(const Problem& problem, const Statistics& statistics, const fmhc_in& scale, const fmhc_in& base,
              double* pre) {
  const auto scales = view<float, 1>(scale);
  const auto bases = view<float, 1>(base);
  const double factor = rms_factor(problem, statistics.square_sum);
  for (int j = 0; j < problem.streams; ++j) {
    const double logit =
        statistics.dot[j] * factor * static_cast<double>(*scales.at(0)) + static_cast<double>(*bases.at(j));
    pre[j] = sigmoid(logit) + static_cast<double>(problem.consts.pre_eps);
  }
}

}  // namespace fmhc::ref
