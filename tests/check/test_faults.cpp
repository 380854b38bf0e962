// The bounds as a whole: a plain fp32 computation passes on every operator and format, and each seeded fault
// of it is caught, by which rule.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "check/storage.h"
#include "tests/check/emulation.h"

namespace fmhc::check::test {
namespace {

constexpr int32_t kOps[] = {FMHC_PRE, FMHC_POST, FMHC_HEAD, FMHC_CONTRACT};
constexpr int32_t kDtypes[] = {FMHC_BF16, FMHC_FP16, FMHC_FP32};

TEST(Bounds, PlainFp32Passes) {
  int cases = 0;
  for (const int32_t op : kOps) {
    for (const int32_t dtype : kDtypes) {
      for (const int32_t norm : {FMHC_NORM_NONE, FMHC_NORM_ENGINE, FMHC_NORM_UNFUSED}) {
        if (op == FMHC_POST && norm != FMHC_NORM_NONE) continue;
        for (const int32_t streams : {1, 3, 4, 8}) {
          const Shape shape{.tokens = 24, .hidden = 96, .streams = streams, .dtype = dtype, .norm = norm};
          const Case call = random_case(op, shape, static_cast<uint32_t>(cases));
          const Report report = check_outputs(call, emulate(call), options_for(call));
          EXPECT_TRUE(report.passed())
              << "op " << op << " dtype " << dtype << " norm " << norm << " streams " << streams << "\n"
              << report.text();
          ++cases;
        }
      }
    }
  }
  EXPECT_EQ(cases, 3 * 4 * 10);
}

TEST(Bounds, PlainFp32PassesWithoutReportedWeights) {
  const Case call = random_case(FMHC_PRE, {}, 5);
  Tensors got = emulate(call);
  got.pre_mix.clear();
  const Report report = check_outputs(call, got, options_for(call));
  EXPECT_TRUE(report.passed()) << report.text();
  EXPECT_EQ(report.find("pre_mix"), nullptr);
  EXPECT_EQ(report.tensors.size(), 3U);
}

// Every operator by backend `ref`, whose double sums are rounded only where they are stored.
TEST(Bounds, ReferenceWithStoragePasses) {
  int cases = 0;
  for (int32_t op = FMHC_EXPAND; op <= FMHC_CONTRACT; ++op) {
    for (const int32_t dtype : kDtypes) {
      for (const int32_t carried : {0, 1}) {
        Case call = random_case(op, {.tokens = 12, .hidden = 200, .dtype = dtype}, 31);
        if (carried != 0) {
          if (op == FMHC_EXPAND || op == FMHC_PROJECT || op == FMHC_POST || op == FMHC_HEAD) continue;
          call.problem.carried_pre = 1;
          for (int i = 0; i < 48; ++i) call.in.pre_in.push_back(0.25 + i / 64.0);
        }
        if (op == FMHC_PROJECT) call.splits = 3;
        const RunResult run = run_case(call, {.kernel = "ref"});
        ASSERT_EQ(run.code, FMHC_OK) << run.text;
        Options options;
        options.arithmetic.chain = 2;
        const Report report = check_outputs(call, run.out, options);
        EXPECT_TRUE(report.passed()) << "op " << op << " dtype " << dtype << "\n" << report.text();
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 3 * 12);
}

// A gain error of the weights that every single dot hides within the sum of its terms' magnitudes.
TEST(Bounds, TruncatedWeightsShowInTheProjection) {
  const Case call = random_case(FMHC_PROJECT, {.tokens = 8, .hidden = 512}, 12);
  Case cut = call;
  for (double& weight : cut.in.fn) weight -= std::fmod(weight, std::ldexp(1.0, std::ilogb(weight) - 10));
  const Tensors got = run_case(cut, {.kernel = "ref"}).out;
  Case weak = call;
  weak.problem.projection = FMHC_CLASS_R;
  const Report as_f = check_outputs(call, got), as_r = check_outputs(weak, got);
  EXPECT_FALSE(as_f.find("dot_mix")->passed());
  EXPECT_STREQ(as_r.find("dot_mix")->failed_rule(), "relative norm");
  EXPECT_TRUE(as_f.find("sqrsum")->passed());
}

struct Seeded {
  Fault fault;
  int32_t op, dtype, norm;
  const char* tensor;  // where it must be caught
};

constexpr Seeded kSeeded[] = {
    {Fault::kTruncatingStore, FMHC_POST, FMHC_BF16, FMHC_NORM_NONE, "residual_out"},
    {Fault::kTruncatingStore, FMHC_PRE, FMHC_BF16, FMHC_NORM_NONE, "layer_input"},
    {Fault::kTruncatingStore, FMHC_CONTRACT, FMHC_BF16, FMHC_NORM_ENGINE, "layer_input"},
    {Fault::kBf16Partials, FMHC_PRE, FMHC_BF16, FMHC_NORM_NONE, "comb_mix"},
    {Fault::kBf16Partials, FMHC_PRE, FMHC_FP32, FMHC_NORM_NONE, "post_mix"},
    {Fault::kBf16Coefficients, FMHC_POST, FMHC_BF16, FMHC_NORM_NONE, "residual_out"},
    {Fault::kBf16Coefficients, FMHC_PRE, FMHC_BF16, FMHC_NORM_NONE, "layer_input"},
    {Fault::kTf32Coefficients, FMHC_POST, FMHC_BF16, FMHC_NORM_NONE, "residual_out"},
    {Fault::kTf32Coefficients, FMHC_HEAD, FMHC_BF16, FMHC_NORM_NONE, "layer_input"},
    {Fault::kTf32Coefficients, FMHC_POST, FMHC_FP32, FMHC_NORM_NONE, "residual_out"},
    {Fault::kStaleColumn, FMHC_POST, FMHC_BF16, FMHC_NORM_NONE, "residual_out"},
    {Fault::kStaleColumn, FMHC_PRE, FMHC_FP16, FMHC_NORM_NONE, "layer_input"},
    {Fault::kTransposedComb, FMHC_POST, FMHC_FP32, FMHC_NORM_NONE, "residual_out"},
    {Fault::kTransposedComb, FMHC_POST, FMHC_BF16, FMHC_NORM_NONE, "residual_out"},
    {Fault::kTruncatedWeights, FMHC_PRE, FMHC_BF16, FMHC_NORM_NONE, "comb_mix"},
    {Fault::kPrescaledOutput, FMHC_POST, FMHC_BF16, FMHC_NORM_NONE, "residual_out"},
    {Fault::kNormOfOther, FMHC_PRE, FMHC_BF16, FMHC_NORM_ENGINE, "layer_input"},
    {Fault::kNormOfOther, FMHC_PRE, FMHC_BF16, FMHC_NORM_UNFUSED, "layer_input"},
    {Fault::kUnroundedNorm, FMHC_PRE, FMHC_BF16, FMHC_NORM_ENGINE, "layer_input"},
};

TEST(Bounds, EverySeededFaultIsCaught) {
  std::set<Fault> faults;
  for (const Seeded& seeded : kSeeded) {
    const Shape shape{.hidden = 512, .dtype = seeded.dtype, .norm = seeded.norm};
    const Case call = random_case(seeded.op, shape, 77);
    Options options = options_for(call);
    EXPECT_TRUE(check_outputs(call, emulate(call), options).passed());
    const Report report = check_outputs(call, emulate(call, seeded.fault), options);
    const TensorReport* tensor = report.find(seeded.tensor);
    ASSERT_NE(tensor, nullptr) << report.error;
    EXPECT_FALSE(tensor->passed()) << "fault " << static_cast<int>(seeded.fault) << " op " << seeded.op;
    if (!tensor->passed()) {
      std::printf("fault %d, op %d, dtype %d: %s\n", static_cast<int>(seeded.fault), seeded.op, seeded.dtype,
                  tensor->text().c_str());
    }
    faults.insert(seeded.fault);
  }
  EXPECT_EQ(faults.size(), 10U);
}

// fp32 storage is held against a chain of the kernel's own kind: without fused multiply-adds the error is
// larger, and only a kernel that declares so may make it.
TEST(Bounds, RoundedProductsMustBeDeclared) {
  const Case call = random_case(FMHC_POST, {.dtype = FMHC_FP32}, 6);
  const Tensors got = emulate(call, Fault::kRoundedProducts);
  Options options;
  options.arithmetic = arithmetic_of("cpu.avx2.post", 2048);
  EXPECT_STREQ(check_outputs(call, got, options).find("residual_out")->failed_rule(),
               "rms error to the plain chain's");
  options.arithmetic = arithmetic_of("cpu.sse4.post", 2048);
  EXPECT_TRUE(check_outputs(call, got, options).passed());
  EXPECT_TRUE(check_outputs(call, emulate(call), options).passed());
}

TEST(Bounds, DamagedCoefficientsAreNamed) {
  const Case call = random_case(FMHC_PRE, {.tokens = 8, .hidden = 256}, 3);
  const Tensors good = emulate(call);
  struct Damage {
    Values Tensors::*values;
    const char* tensor;
    size_t index;
    double change;
  };
  for (const Damage& damage : {Damage{&Tensors::comb_mix, "comb_mix", 37, 1e-3},
                               {&Tensors::comb_mix, "comb_mix", 5, -2.0},
                               {&Tensors::post_mix, "post_mix", 9, 1e-4},
                               {&Tensors::pre_mix, "pre_mix", 30, 1e-4},
                               {&Tensors::layer_input, "layer_input", 1000, 1e-2}}) {
    Tensors got = good;
    (got.*damage.values)[damage.index] += damage.change;
    const Report report = check_outputs(call, got, options_for(call));
    const TensorReport* tensor = report.find(damage.tensor);
    ASSERT_NE(tensor, nullptr);
    EXPECT_FALSE(tensor->passed()) << damage.tensor;
    EXPECT_EQ(tensor->worst, static_cast<int64_t>(damage.index));
  }
}

// The conditions on comb_mix beyond its entries, each alone.
TEST(Bounds, CombSumsAndSigns) {
  const Case call = random_case(FMHC_PRE, {.tokens = 4, .hidden = 64}, 8);
  const auto holds = [&](const Tensors& got, const char* rule) {
    const Report report = check_outputs(call, got, options_for(call));
    for (const Outcome& outcome : report.find("comb_mix")->outcomes) {
      if (std::string(outcome.rule) == rule) return outcome.holds;
    }
    ADD_FAILURE() << "no rule " << rule;
    return false;
  };
  const Tensors good = emulate(call);
  Tensors column = good, row = good, negative = good;
  column.comb_mix[3] += 3e-6;
  for (size_t k = 0; k < 4; ++k) row.comb_mix[8 + k] += 1e-2;
  negative.comb_mix[16] = -1e-9;
  EXPECT_TRUE(holds(good, "column sums") && holds(good, "row sums") && holds(good, "negative entry"));
  EXPECT_FALSE(holds(column, "column sums"));
  EXPECT_TRUE(holds(column, "row sums"));
  EXPECT_FALSE(holds(row, "row sums"));
  EXPECT_FALSE(holds(negative, "negative entry"));
}

TEST(Bounds, NanStaysInItsToken) {
  Case call = random_case(FMHC_PRE, {.tokens = 4, .hidden = 64}, 9);
  call.in.residual[300] = std::nan("");  // token 1
  const Tensors got = emulate(call);
  Options options = options_for(call);
  EXPECT_TRUE(check_outputs(call, got, options).passed()) << check_outputs(call, got, options).text();
  Tensors leaked = got;
  leaked.layer_input[64 * 3] = std::nan("");
  const Report report = check_outputs(call, leaked, options);
  EXPECT_STREQ(report.find("layer_input")->failed_rule(), "nan and infinity");
  Tensors healed = got;
  healed.post_mix[4] = 1;
  EXPECT_STREQ(check_outputs(call, healed, options).find("post_mix")->failed_rule(), "nan and infinity");
}

TEST(Bounds, MissingOutputAndFailingOracle) {
  const Case call = random_case(FMHC_POST, {.tokens = 2, .hidden = 16}, 4);
  EXPECT_FALSE(check_outputs(call, {}, options_for(call)).passed());
  Options options = options_for(call);
  options.reference = [](const Case&) { return RunResult{FMHC_UNSUPPORTED, "no oracle", {}, {}}; };
  const Report report = check_outputs(call, emulate(call), options);
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.error, "no oracle");
}

}  // namespace
}  // namespace fmhc::check::test
