#include "check/plain.h"

#include <algorithm>
#include <cmath>

#include "check/storage.h"

namespace fmhc::check {
namespace {

constexpr size_t kLanes = 32;

float narrow(double value) {
  return static_cast<float>(value);
}
double widen(float value) {
  return static_cast<double>(value);
}

}  // namespace

PlainFp32::PlainFp32(const Case& call)
    : call_(call),
      streams_(static_cast<size_t>(call.problem.streams)),
      hidden_(static_cast<size_t>(call.problem.hidden)) {}

int64_t PlainFp32::chain(const Case& call) {
  const auto lanes = static_cast<int64_t>(kLanes);
  return call.problem.streams * call.problem.hidden / lanes + lanes + 1;
}

double PlainFp32::stored(float value) const {
  return round_to(widen(value), call_.problem.residual_dtype);
}
float PlainFp32::multiply_add(float a, float b, float sum) const {
  return std::fma(a, b, sum);
}
float PlainFp32::add_output(float post, float z, float sum) const {
  return multiply_add(post, z, sum);
}
size_t PlainFp32::comb_entry(size_t source, size_t destination) const {
  return source * streams_ + destination;
}
bool PlainFp32::unrounded_square() const {
  return call_.problem.norm == FMHC_NORM_ENGINE;
}
float PlainFp32::normed(float row) const {
  return narrow(round_to(widen(row), call_.problem.residual_dtype));
}

Tensors PlainFp32::run() {
  const auto tokens = static_cast<size_t>(call_.tokens);
  const int32_t op = call_.problem.op;
  if (op == FMHC_EXPAND) {
    expand();
  } else if (op == FMHC_POST) {
    post();
  } else if (op == FMHC_CONTRACT) {
    collapse(call_.problem.carried_pre != 0 ? call_.in.pre_in
                                            : Values(tokens * streams_, 1.0 / static_cast<double>(streams_)));
  } else {
    for (size_t t = 0; t < tokens; ++t) coefficients(t);
    collapse(call_.problem.carried_pre != 0 ? call_.in.pre_in : out_.pre_mix);
  }
  return std::move(out_);
}

template <class Term>
float PlainFp32::lane_sum(size_t count, const Term& term) const {
  float lanes[kLanes] = {};
  for (size_t i = 0; i < count; ++i) lanes[i % kLanes] += term(i);
  float sum = 0;
  for (const float lane : lanes) sum += partial(lane);
  return sum;
}

float PlainFp32::residual(size_t token, size_t stream, size_t column) const {
  return narrow(call_.in.residual[(token * streams_ + stream) * hidden_ + column]);
}

void PlainFp32::expand() {
  for (size_t i = 0; i < call_.in.residual.size(); i += hidden_) {
    const auto row = call_.in.residual.begin() + static_cast<ptrdiff_t>(i);
    for (size_t j = 0; j < streams_; ++j) {
      out_.residual_out.insert(out_.residual_out.end(), row, row + static_cast<ptrdiff_t>(hidden_));
    }
  }
}

void PlainFp32::coefficients(size_t token) {
  const size_t columns = streams_ * hidden_;
  const double* row = &call_.in.residual[token * columns];
  const float square = lane_sum(columns, [&](size_t c) { return narrow(row[c]) * narrow(row[c]); });
  const float factor = 1 / std::sqrt(square / static_cast<float>(columns) + call_.problem.consts.rms_eps);
  std::vector<float> logits;
  for (size_t o = 0; o < call_.in.base.size(); ++o) {
    const double* weights = &call_.in.fn[o * columns];
    const float dot =
        lane_sum(columns, [&](size_t c) { return narrow(row[c]) * weight(narrow(weights[c])); });
    const size_t group = std::min({o / streams_, call_.in.scale.size() - 1, size_t{2}});
    logits.push_back(dot * factor * narrow(call_.in.scale[group]) + narrow(call_.in.base[o]));
  }
  const auto sigmoid = [&](size_t i) { return 1 / (1 + std::exp(-logits[i])); };
  for (size_t j = 0; j < streams_; ++j) {
    out_.pre_mix.push_back(widen(sigmoid(j) + call_.problem.consts.pre_eps));
  }
  if (call_.problem.op == FMHC_HEAD) return;
  for (size_t j = 0; j < streams_; ++j) {
    out_.post_mix.push_back(widen(call_.problem.consts.post_mult * sigmoid(streams_ + j)));
  }
  sinkhorn(&logits[2 * streams_]);
}

void PlainFp32::sinkhorn(const float* logits) {
  const size_t n = streams_;
  const float eps = call_.problem.consts.sinkhorn_eps;
  std::vector<float> comb(n * n);
  for (size_t j = 0; j < n; ++j) {
    const float* row = logits + j * n;
    const float top = *std::max_element(row, row + n);
    float sum = 0;
    for (size_t k = 0; k < n; ++k) sum += comb[j * n + k] = std::exp(row[k] - top);
    for (size_t k = 0; k < n; ++k) comb[j * n + k] = comb[j * n + k] / sum + eps;
  }
  // A line is n entries `inner` apart; lines start `outer` apart.
  const auto divide = [&](size_t outer, size_t inner) {
    for (size_t a = 0; a < n; ++a) {
      float sum = eps;
      for (size_t b = 0; b < n; ++b) sum += comb[a * outer + b * inner];
      for (size_t b = 0; b < n; ++b) comb[a * outer + b * inner] /= sum;
    }
  };
  divide(1, n);
  for (int32_t i = 1; i < call_.problem.consts.sinkhorn_iters; ++i) {
    divide(n, 1);
    divide(1, n);
  }
  for (const float value : comb) out_.comb_mix.push_back(widen(value));
}

void PlainFp32::collapse(const Values& mix) {
  for (size_t t = 0; t < static_cast<size_t>(call_.tokens); ++t) {
    std::vector<float> row(hidden_);
    for (size_t h = 0; h < hidden_; ++h) {
      for (size_t j = 0; j < streams_; ++j) {
        row[h] = multiply_add(coefficient(narrow(mix[t * streams_ + j])), residual(t, j, h), row[h]);
      }
    }
    if (call_.problem.norm != FMHC_NORM_NONE) normalise(&row);
    for (const float value : row) out_.layer_input.push_back(stored(value));
  }
}

void PlainFp32::normalise(std::vector<float>* row) const {
  const float square = lane_sum(hidden_, [&](size_t h) {
    const float y =
        unrounded_square() ? (*row)[h] : narrow(round_to(widen((*row)[h]), call_.problem.residual_dtype));
    return y * y;
  });
  const float factor = 1 / std::sqrt(square / static_cast<float>(hidden_) + call_.problem.consts.norm_eps);
  for (size_t h = 0; h < hidden_; ++h) {
    (*row)[h] = normed((*row)[h]) * factor * narrow(call_.in.norm_weight[h]);
  }
}

void PlainFp32::post() {
  for (size_t t = 0; t < static_cast<size_t>(call_.tokens); ++t) {
    for (size_t k = 0; k < streams_; ++k) {
      for (size_t h = 0; h < hidden_; ++h) {
        float sum = 0;
        for (size_t j = 0; j < streams_; ++j) {
          const float entry = narrow(call_.in.comb_in[t * streams_ * streams_ + comb_entry(j, k)]);
          sum = multiply_add(coefficient(entry), residual(t, j, h), sum);
        }
        const float weight_of_output = coefficient(narrow(call_.in.post_in[t * streams_ + k]));
        sum = add_output(weight_of_output, narrow(call_.in.sublayer_output[t * hidden_ + h]), sum);
        out_.residual_out.push_back(stored(sum));
      }
    }
  }
}

RunResult run_plain(const Case& call) {
  return {FMHC_OK, {}, "plain fp32", PlainFp32(call).run()};
}

}  // namespace fmhc::check
