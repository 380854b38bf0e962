#include "tests/check/emulation.h"

#include <bit>
#include <cmath>

#include "check/storage.h"

namespace fmhc::check::test {
namespace {

constexpr size_t kLanes = 32;

float bf16(float value) {
  return static_cast<float>(round_to(static_cast<double>(value), FMHC_BF16));
}
// Cuts the significand to `kept` bits behind the leading one.
float cut(float value, uint32_t kept) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & ~((1U << (23 - kept)) - 1));
}
float narrow(double value) {
  return static_cast<float>(value);
}

class Emulation {
 public:
  Emulation(const Case& call, Fault fault)
      : call_(call),
        fault_(fault),
        n_(static_cast<size_t>(call.problem.streams)),
        hidden_(static_cast<size_t>(call.problem.hidden)) {}

  Tensors run() {
    if (call_.problem.op == FMHC_POST) {
      post();
    } else if (call_.problem.op == FMHC_CONTRACT) {
      collapse(call_.problem.carried_pre != 0
                   ? call_.in.pre_in
                   : Values(static_cast<size_t>(call_.tokens) * n_, 1.0 / static_cast<double>(n_)));
    } else {
      for (size_t t = 0; t < static_cast<size_t>(call_.tokens); ++t) coefficients(t);
      collapse(out_.pre_mix);
    }
    return std::move(out_);
  }

 private:
  double stored(float value) const {
    const int32_t dtype = call_.problem.residual_dtype;
    if (fault_ != Fault::kTruncatingStore || dtype != FMHC_BF16) {
      return round_to(static_cast<double>(value), dtype);
    }
    return static_cast<double>(cut(value, 7));
  }
  float used(double coefficient) const {
    const float value = narrow(coefficient);
    if (fault_ == Fault::kBf16Coefficients) return bf16(value);
    return fault_ == Fault::kTf32Coefficients ? cut(value, 10) : value;
  }
  float residual(size_t t, size_t j, size_t h) const {
    return narrow(call_.in.residual[(t * n_ + j) * hidden_ + h]);
  }

  template <class Term>
  float lane_sum(size_t count, const Term& term) const {
    float lanes[kLanes] = {};
    for (size_t i = 0; i < count; ++i) lanes[i % kLanes] += term(i);
    float sum = 0;
    for (const float lane : lanes) sum += fault_ == Fault::kBf16Partials ? bf16(lane) : lane;
    return sum;
  }

  void coefficients(size_t t) {
    const size_t columns = n_ * hidden_;
    const double* row = &call_.in.residual[t * columns];
    const float square = lane_sum(columns, [&](size_t c) { return narrow(row[c]) * narrow(row[c]); });
    const float factor = 1 / std::sqrt(square / static_cast<float>(columns) + call_.problem.consts.rms_eps);
    std::vector<float> logits;
    for (size_t o = 0; o < call_.in.base.size(); ++o) {
      const double* weights = &call_.in.fn[o * columns];
      const float dot = lane_sum(columns, [&](size_t c) {
        const float weight = narrow(weights[c]);
        return narrow(row[c]) * (fault_ == Fault::kTruncatedWeights ? cut(weight, 10) : weight);
      });
      const size_t group = std::min<size_t>(o / n_, call_.in.scale.size() - 1);
      logits.push_back(dot * factor * narrow(call_.in.scale[group]) + narrow(call_.in.base[o]));
    }
    const auto sigmoid = [&](size_t i) { return 1 / (1 + std::exp(-logits[i])); };
    for (size_t j = 0; j < n_; ++j) {
      out_.pre_mix.push_back(static_cast<double>(sigmoid(j) + call_.problem.consts.pre_eps));
    }
    if (call_.problem.op == FMHC_HEAD) return;
    for (size_t j = 0; j < n_; ++j) {
      out_.post_mix.push_back(static_cast<double>(call_.problem.consts.post_mult * sigmoid(n_ + j)));
    }
    sinkhorn(&logits[2 * n_]);
  }

  void sinkhorn(const float* logits) {
    const float eps = call_.problem.consts.sinkhorn_eps;
    std::vector<float> comb(n_ * n_);
    for (size_t j = 0; j < n_; ++j) {
      const float* row = logits + j * n_;
      const float top = *std::max_element(row, row + n_);
      float sum = 0;
      for (size_t k = 0; k < n_; ++k) sum += comb[j * n_ + k] = std::exp(row[k] - top);
      for (size_t k = 0; k < n_; ++k) comb[j * n_ + k] = comb[j * n_ + k] / sum + eps;
    }
    // Lines are n entries `inner` apart, starting `outer` apart.
    const auto normalise = [&](size_t outer, size_t inner) {
      for (size_t a = 0; a < n_; ++a) {
        float sum = eps;
        for (size_t b = 0; b < n_; ++b) sum += comb[a * outer + b * inner];
        for (size_t b = 0; b < n_; ++b) comb[a * outer + b * inner] /= sum;
      }
    };
    normalise(1, n_);
    for (int32_t i = 1; i < call_.problem.consts.sinkhorn_iters; ++i) {
      normalise(n_, 1);
      normalise(1, n_);
    }
    for (const float value : comb) out_.comb_mix.push_back(static_cast<double>(value));
  }

  void collapse(const Values& mix) {
    for (size_t t = 0; t < static_cast<size_t>(call_.tokens); ++t) {
      std::vector<float> row(hidden_);
      for (size_t h = 0; h < hidden_; ++h) {
        for (size_t j = 0; j < n_; ++j) row[h] = std::fma(used(mix[t * n_ + j]), residual(t, j, h), row[h]);
      }
      if (fault_ == Fault::kStaleColumn && t > 0) {
        row[hidden_ / 3] = narrow(out_.layer_input[(t - 1) * hidden_ + hidden_ / 3]);
      }
      if (call_.problem.norm != FMHC_NORM_NONE) normalise_row(&row);
      for (const float value : row) out_.layer_input.push_back(stored(value));
    }
  }

  void normalise_row(std::vector<float>* row) const {
    const auto rounded = [&](size_t h) {
      return narrow(round_to(static_cast<double>((*row)[h]), call_.problem.residual_dtype));
    };
    const bool engine = (call_.problem.norm == FMHC_NORM_ENGINE) != (fault_ == Fault::kNormOfOther);
    const float square = lane_sum(hidden_, [&](size_t h) {
      const float y = engine ? (*row)[h] : rounded(h);
      return y * y;
    });
    const float factor = 1 / std::sqrt(square / static_cast<float>(hidden_) + call_.problem.consts.norm_eps);
    for (size_t h = 0; h < hidden_; ++h) {
      const float y = fault_ == Fault::kUnroundedNorm ? (*row)[h] : rounded(h);
      (*row)[h] = y * factor * narrow(call_.in.norm_weight[h]);
    }
  }

  void post() {
    for (size_t t = 0; t < static_cast<size_t>(call_.tokens); ++t) {
      for (size_t k = 0; k < n_; ++k) {
        for (size_t h = 0; h < hidden_; ++h) {
          float sum = 0;
          for (size_t j = 0; j < n_; ++j) {
            const size_t entry = fault_ == Fault::kTransposedComb ? k * n_ + j : j * n_ + k;
            sum = std::fma(used(call_.in.comb_in[t * n_ * n_ + entry]), residual(t, j, h), sum);
          }
          const float weight = used(call_.in.post_in[t * n_ + k]);
          const float z = narrow(call_.in.sublayer_output[t * hidden_ + h]);
          sum = fault_ == Fault::kPrescaledOutput ? sum + bf16(weight * z) : std::fma(weight, z, sum);
          if (fault_ == Fault::kStaleColumn && t > 0 && h == hidden_ / 3) {
            sum = narrow(out_.residual_out[((t - 1) * n_ + k) * hidden_ + h]);
          }
          out_.residual_out.push_back(stored(sum));
        }
      }
    }
  }

  const Case& call_;
  const Fault fault_;
  const size_t n_, hidden_;
  Tensors out_;
};

}  // namespace

Tensors emulate(const Case& call, Fault fault) {
  return Emulation(call, fault).run();
}

Case random_case(int32_t op, const Shape& shape, uint32_t seed) {
  Case call;
  call.tokens = shape.tokens;
  fmhc_problem& problem = call.problem;
  problem.struct_size = sizeof problem;
  problem.op = op;
  problem.streams = shape.streams;
  problem.hidden = shape.hidden;
  problem.max_tokens = shape.tokens;
  problem.residual_dtype = shape.dtype;
  problem.projection = FMHC_CLASS_F;
  problem.norm = shape.norm;
  problem.norm_weight_dtype = shape.norm == FMHC_NORM_NONE ? 0 : FMHC_FP32;
  problem.consts = {1e-6F, 1e-6F, 1e-6F, 2.0F, 1e-6F, 20};
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0.05, 1.0);
  for (const Row& row : rows()) {
    if (row.in == nullptr || !has(row, call)) continue;
    Values& values = call.in.*row.values;
    size_t count = 1;
    for (const int64_t extent : shape_of(row, call)) count *= static_cast<size_t>(extent);
    const auto columns = static_cast<double>(shape.streams * shape.hidden);
    const bool squares = row.values == &Tensors::sqrsum_in;
    const bool mix = row.values == &Tensors::comb_in || row.values == &Tensors::post_in ||
                     row.values == &Tensors::pre_in || row.values == &Tensors::scale || squares;
    const double size = row.values == &Tensors::fn           ? 1 / std::sqrt(columns)
                        : row.values == &Tensors::dot_mix_in ? std::sqrt(columns)
                        : squares                            ? columns
                                                             : 1;
    for (size_t i = 0; i < count; ++i) {
      values.push_back(round_to(size * (mix ? uniform(engine) : normal(engine)), dtype_of(row, problem)));
    }
  }
  return call;
}

int64_t chain_of(const Case& call) {
  return call.problem.streams * call.problem.hidden / static_cast<int64_t>(kLanes) +
         static_cast<int64_t>(kLanes) + 1;
}

Options options_for(const Case& call) {
  Options options;
  options.arithmetic.chain = chain_of(call);
  return options;
}

}  // namespace fmhc::check::test
