// Scalars are honoured: fn is zero, so that the coefficients follow from base by closed formulas, evaluated
// here in double. The logits are large, or one Sinkhorn round more or less would not show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "calls.h"

namespace abi_test {
namespace {

constexpr int kStreams = 4;
constexpr double kExactEnough = 2e-6;  // fp32 coefficients

double base_of(int logit) {
  return 20 * std::sin(0.7 * logit + 2);
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

struct Matrix {
  double at[kStreams][kStreams];
};

Matrix expected_comb(int rounds, double eps) {
  Matrix comb{};
  for (int j = 0; j < kStreams; ++j) {
    double sum = 0;
    for (int k = 0; k < kStreams; ++k) sum += std::exp(base_of(2 * kStreams + j * kStreams + k));
    for (int k = 0; k < kStreams; ++k) {
      comb.at[j][k] = std::exp(base_of(2 * kStreams + j * kStreams + k)) / sum + eps;
    }
  }
  for (int step = 1; step < 2 * rounds; ++step) {
    const bool columns = step % 2 == 1;
    for (int a = 0; a < kStreams; ++a) {
      double sum = eps;
      for (int b = 0; b < kStreams; ++b) sum += columns ? comb.at[b][a] : comb.at[a][b];
      for (int b = 0; b < kStreams; ++b) (columns ? comb.at[b][a] : comb.at[a][b]) /= sum;
    }
  }
  return comb;
}

// pre with these constants, on every kernel; `check` gets the outputs of one token.
template <typename Check>
size_t for_each_kernel(const fmhc_consts& consts, Check&& check) {
  Options options;
  options.tokens = 1;
  size_t kernels = 0;
  for (const std::string& kernel : kernels_for(options)) {
    options.kernel = kernel.c_str();
    Call call(options);
    call.problem.consts = consts;
    fmhc_hints hints{};
    hints.struct_size = sizeof hints;
    hints.kernel = kernel.c_str();
    // A kernel may decline constants that its form cannot take, never change them.
    const int32_t planned = fmhc_plan_make(&call.problem, &call.target, &hints, &call.plan, &call.diag);
    if (planned == FMHC_UNSUPPORTED) continue;
    EXPECT_EQ(planned, FMHC_OK) << call.diag.text;
    std::memset(const_cast<void*>(call.args.fn.data), 0, sizeof(float) * 24 * 256);
    auto* base = static_cast<float*>(const_cast<void*>(call.args.base.data));
    for (int logit = 0; logit < 24; ++logit) base[logit] = static_cast<float>(base_of(logit));
    Memory scratch(fmhc_plan_scratch(&call.plan), 0);
    call.args.scratch = scratch.data();
    call.args.scratch_bytes = scratch.size();
    EXPECT_EQ(call.run(), FMHC_OK) << call.diag.text;
    check(call, kernel);
    ++kernels;
  }
  return kernels;
}

constexpr fmhc_consts kConsts = {1e-6f, 1e-6f, 1e-6f, 2.0f, 0.0f, 20};

TEST(Scalars, EverySinkhornRoundCounts) {
  for (const int rounds : {1, 2, 3, 19, 20, 21, 100}) {
    fmhc_consts consts = kConsts;
    consts.sinkhorn_iters = rounds;
    const Matrix wanted = expected_comb(rounds, static_cast<double>(consts.sinkhorn_eps));
    const size_t kernels = for_each_kernel(consts, [&](const Call& call, const std::string& kernel) {
      const auto* got = static_cast<const float*>(call.args.comb_mix.data);
      for (int entry = 0; entry < 16; ++entry) {
        EXPECT_NEAR(got[entry], wanted.at[entry / 4][entry % 4], kExactEnough) << kernel << ", " << rounds;
      }
    });
    EXPECT_GE(kernels, 1u);
  }
}

// What the tolerance has to tell apart.
TEST(Scalars, NeighbouringRoundsDiffer) {
  for (const int rounds : {1, 2, 19, 20}) {
    const Matrix one = expected_comb(rounds, 1e-6);
    const Matrix next = expected_comb(rounds + 1, 1e-6);
    double most = 0;
    for (int entry = 0; entry < 16; ++entry) {
      most = std::max(most, std::fabs(one.at[entry / 4][entry % 4] - next.at[entry / 4][entry % 4]));
    }
    EXPECT_GE(most, 100 * kExactEnough) << rounds;
  }
}

TEST(Scalars, EpsilonsAndMultiplier) {
  size_t cases = 0;
  for (const float eps : {0.0f, 1e-6f, 1e-3f, 0.5f}) {
    for (const float multiplier : {0.0f, 1.0f, 2.0f, 2.5f, -1.0f}) {
      const fmhc_consts consts = {1e-6f, eps, 1e-3f, multiplier, 0.0f, 3};
      const Matrix wanted = expected_comb(3, static_cast<double>(1e-3f));
      cases += for_each_kernel(consts, [&](const Call& call, const std::string& kernel) {
        const auto* pre = static_cast<const float*>(call.args.pre_mix.data);
        const auto* post = static_cast<const float*>(call.args.post_mix.data);
        const auto* comb = static_cast<const float*>(call.args.comb_mix.data);
        for (int j = 0; j < kStreams; ++j) {
          EXPECT_NEAR(pre[j], sigmoid(base_of(j)) + static_cast<double>(eps), kExactEnough) << kernel;
          EXPECT_NEAR(post[j], static_cast<double>(multiplier) * sigmoid(base_of(kStreams + j)), kExactEnough)
              << kernel;
        }
        for (int entry = 0; entry < 16; ++entry) {
          EXPECT_NEAR(comb[entry], wanted.at[entry / 4][entry % 4], kExactEnough) << kernel;
        }
      });
    }
  }
  EXPECT_GE(cases, 20u);
}

// Legal as long as no column vanishes.
TEST(Scalars, SinkhornEpsZero) {
  fmhc_consts consts = kConsts;
  consts.sinkhorn_eps = 0;
  consts.sinkhorn_iters = 2;
  const Matrix wanted = expected_comb(2, 0);
  const size_t kernels = for_each_kernel(consts, [&](const Call& call, const std::string& kernel) {
    const auto* got = static_cast<const float*>(call.args.comb_mix.data);
    for (int entry = 0; entry < 16; ++entry) {
      EXPECT_NEAR(got[entry], wanted.at[entry / 4][entry % 4], kExactEnough) << kernel;
    }
  });
  EXPECT_GE(kernels, 1u);
}

TEST(Scalars, SplitsAreHonoured) {
  size_t splits_seen = 0;
  for (const int splits : {1, 2, 3, 4}) {
    Options options;
    options.op = FMHC_PROJECT;
    options.storage = FMHC_FP64;
    options.splits = splits;
    for (const std::string& kernel : kernels_for(options)) {
      options.kernel = kernel.c_str();
      Call call(options);
      EXPECT_EQ(call.plan_code(), FMHC_OK);
      EXPECT_EQ(fmhc_plan_split_k(&call.plan, options.tokens), splits);
      EXPECT_EQ(call.run(), FMHC_OK) << call.diag.text;
      // Slices are whole blocks of 64 columns, here the streams, the first slices one longer.
      const auto* squares = static_cast<const double*>(call.args.sqrsum.data);
      const auto* residual = static_cast<const double*>(call.args.residual.data);
      int stream = 0;
      for (int s = 0; s < splits; ++s) {
        double sum = 0;
        const int end = stream + 4 / splits + (s < 4 % splits ? 1 : 0);
        for (int column = stream * 64; column < end * 64; ++column)
          sum += residual[column] * residual[column];
        stream = end;
        EXPECT_NEAR(squares[s * options.tokens], sum, 1e-12 * sum) << kernel << " slice " << s;
        ++splits_seen;
      }
      EXPECT_EQ(stream, kStreams);
    }
  }
  EXPECT_GE(splits_seen, 10u);
}

}  // namespace
}  // namespace abi_test
