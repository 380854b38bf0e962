#include "tests/check/emulation.h"

#include <bit>
#include <cmath>

#include "check/plain.h"
#include "check/storage.h"

namespace fmhc::check::test {
namespace {

float bf16(float value) {
  return static_cast<float>(round_to(static_cast<double>(value), FMHC_BF16));
}
// Cuts the significand to `kept` bits behind the leading one.
float cut(float value, uint32_t kept) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & ~((1U << (23 - kept)) - 1));
}

class Faulty : public PlainFp32 {
 public:
  Faulty(const Case& call, Fault fault) : PlainFp32(call), fault_(fault) {}

 private:
  double stored(float value) const override {
    return fault_ == Fault::kTruncatingStore ? static_cast<double>(cut(value, 7)) : PlainFp32::stored(value);
  }
  float weight(float fn) const override { return fault_ == Fault::kTruncatedWeights ? cut(fn, 10) : fn; }
  float partial(float lane) const override { return fault_ == Fault::kBf16Partials ? bf16(lane) : lane; }
  float coefficient(float value) const override {
    if (fault_ == Fault::kBf16Coefficients) return bf16(value);
    return fault_ == Fault::kTf32Coefficients ? cut(value, 10) : value;
  }
  float multiply_add(float a, float b, float sum) const override {
    return fault_ == Fault::kRoundedProducts ? a * b + sum : PlainFp32::multiply_add(a, b, sum);
  }
  float add_output(float post, float z, float sum) const override {
    return fault_ == Fault::kPrescaledOutput ? sum + bf16(post * z) : PlainFp32::add_output(post, z, sum);
  }
  size_t comb_entry(size_t source, size_t destination) const override {
    return fault_ == Fault::kTransposedComb ? PlainFp32::comb_entry(destination, source)
                                            : PlainFp32::comb_entry(source, destination);
  }
  bool unrounded_square() const override {
    return PlainFp32::unrounded_square() != (fault_ == Fault::kNormOfOther);
  }
  float normed(float row) const override {
    return fault_ == Fault::kUnroundedNorm ? row : PlainFp32::normed(row);
  }

  const Fault fault_;
};

// Column hidden/3 of every row is that of the row `step` before.
void make_stale(const Case& call, size_t step, Values* rows) {
  const auto hidden = static_cast<size_t>(call.problem.hidden);
  for (size_t row = rows->size() / std::max<size_t>(hidden, 1); row-- > step;) {
    (*rows)[row * hidden + hidden / 3] = (*rows)[(row - step) * hidden + hidden / 3];
  }
}

}  // namespace

Tensors emulate(const Case& call, Fault fault) {
  Tensors out = Faulty(call, fault).run();
  if (fault == Fault::kStaleColumn) {
    make_stale(call, 1, &out.layer_input);
    make_stale(call, static_cast<size_t>(call.problem.streams), &out.residual_out);
  }
  return out;
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

Options options_for(const Case& call) {
  Options options;
  options.arithmetic.chain = PlainFp32::chain(call);
  return options;
}

}  // namespace fmhc::check::test
