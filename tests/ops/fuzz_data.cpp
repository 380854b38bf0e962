#include "fuzz_data.h"

#include <cmath>

#include "check/storage.h"

namespace fmhc::ops_test {
namespace {

using check::Case;
using check::Row;
using check::Tensors;
using check::Values;

constexpr double kHotShare = 0.01;

double normal(std::mt19937_64* random) {
  return std::normal_distribution<double>()(*random);
}

double uniform(std::mt19937_64* random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(*random);
}

void fill_streams(Family family, std::mt19937_64* random, int64_t hidden, Values* values) {
  std::vector<double> gain(static_cast<size_t>(hidden), 1.0);
  if (family == Family::kHotChannels) {
    for (double& factor : gain) {
      if (uniform(random, 0, 1) < kHotShare) factor = uniform(random, 100, 1000);
    }
  }
  for (size_t i = 0; i < values->size(); ++i) {
    const double value = family == Family::kLogNormal
                             ? std::exp(1.5 * normal(random)) * (uniform(random, 0, 1) < 0.5 ? -1 : 1)
                             : normal(random);
    (*values)[i] = value * gain[i % gain.size()];
  }
}

// Partials that streams of about 1 would make.
void fill_sums(double spread, std::mt19937_64* random, const Case& call, const Row& row, Values* values) {
  const auto width = static_cast<double>(call.problem.hidden * call.problem.streams);
  const auto slices = static_cast<double>(call.splits);
  const bool squares = row.values == &Tensors::sqrsum_in;
  for (double& value : *values) {
    value = squares ? width / slices * uniform(random, 0.5, 2) : spread / std::sqrt(slices) * normal(random);
  }
}

void fill_row(Family family, double spread, std::mt19937_64* random, const Case& call, const Row& row,
              Values* values) {
  const auto width = static_cast<double>(call.problem.hidden * call.problem.streams);
  if (row.values == &Tensors::residual || row.values == &Tensors::sublayer_output) {
    return fill_streams(family, random, call.problem.hidden, values);
  }
  if (row.values == &Tensors::dot_mix_in || row.values == &Tensors::sqrsum_in) {
    return fill_sums(spread, random, call, row, values);
  }
  const bool mix = row.values == &Tensors::comb_in || row.values == &Tensors::pre_in;
  for (double& value : *values) {
    if (row.values == &Tensors::fn) {
      value = spread / std::sqrt(width) * normal(random);
    } else if (row.values == &Tensors::post_in) {
      value = uniform(random, 0, 2);
    } else if (mix) {
      value = uniform(random, 0, 1);
    } else if (row.values == &Tensors::base) {
      value = normal(random);
    } else {
      value = uniform(random, 0.5, 1.5);  // scale, norm_weight
    }
  }
}

void copy_first_stream(const Case& call, Values* residual) {
  const int64_t h = call.problem.hidden, n = call.problem.streams;
  for (int64_t t = 0; t < call.tokens; ++t) {
    const auto first = residual->begin() + t * n * h;
    for (int64_t j = 1; j < n; ++j) std::copy(first, first + h, first + j * h);
  }
}

}  // namespace

fmhc_problem make_problem(int32_t op, int32_t streams, int64_t hidden, int64_t tokens) {
  fmhc_problem problem{};
  problem.struct_size = sizeof problem;
  problem.op = op;
  problem.streams = streams;
  problem.residual_dtype = FMHC_BF16;
  problem.projection = FMHC_CLASS_F;
  problem.hidden = hidden;
  problem.max_tokens = tokens > 0 ? tokens : 1;
  problem.consts = {1e-6F, 1e-6F, 1e-6F, 2.0F, 1e-6F, 20};
  return problem;
}

void fill_inputs(Family family, double spread, bool equal_streams, std::mt19937_64* random, Case* call) {
  for (const Row& row : check::rows()) {
    if (row.in == nullptr || !check::has(row, *call)) continue;
    int64_t count = 1;
    for (const int64_t extent : check::shape_of(row, *call)) count *= extent;
    Values& values = call->in.*row.values;
    values.assign(static_cast<size_t>(count), 0.0);
    fill_row(family, spread, random, *call, row, &values);
    if (equal_streams && row.values == &Tensors::residual) copy_first_stream(*call, &values);
    for (double& value : values) value = check::round_to(value, check::dtype_of(row, call->problem));
  }
}

}  // namespace fmhc::ops_test
