// The alarm of the free run: silent for plain fp32, and for errors that add up it rings, by which rule.
#include <gtest/gtest.h>

#include <cmath>

#include "check/plain.h"
#include "check/storage.h"
#include "cli/verify_replay.h"

namespace fmhc::cli {
namespace {

using check::PlainFp32;

TraceCalls recorded(const char* name) {
  return open_trace(std::string(FMHC_TEST_DATA) + "/" + name + ".safetensors");
}

template <class Arithmetic>
FreeRun run(const TraceCalls& trace) {
  const auto backend = [](const Case& call) {
    return check::RunResult{FMHC_OK, {}, "test", Arithmetic(call).run()};
  };
  return run_free(trace, backend, [] {});
}

bool holds(const FreeRun& free, const std::string& rule) {
  for (const check::Outcome& outcome : free.alarm.outcomes) {
    if (rule == outcome.rule) return outcome.holds;
  }
  ADD_FAILURE() << "no rule " << rule;
  return false;
}

// Towards zero: hidden in every single element, it shrinks the residual at every site.
struct Truncating : PlainFp32 {
  using PlainFp32::PlainFp32;
  double stored(float value) const override {
    const double exact = static_cast<double>(value), nearest = PlainFp32::stored(value);
    return std::fabs(nearest) <= std::fabs(exact)
               ? nearest
               : check::round_to(2 * exact - nearest, call_.problem.residual_dtype);
  }
};

struct Bf16Coefficients : PlainFp32 {
  using PlainFp32::PlainFp32;
  float coefficient(float value) const override {
    return static_cast<float>(check::round_to(static_cast<double>(value), FMHC_BF16));
  }
};

struct Transposed : PlainFp32 {
  using PlainFp32::PlainFp32;
  size_t comb_entry(size_t source, size_t destination) const override {
    return PlainFp32::comb_entry(destination, source);
  }
};

struct NotANumber : PlainFp32 {
  using PlainFp32::PlainFp32;
  float add_output(float post, float z, float sum) const override {
    return z > 0 ? std::nanf("") : PlainFp32::add_output(post, z, sum);
  }
};

TEST(FreeRun, PlainFp32IsItsOwnYardstick) {
  int traces = 0;
  for (const char* name :
       {"hf_v4_h256_l4_f32", "hf_glm5_h256_l4_f32", "hf_v4_h256_l4_bf16", "sglang_v41_h256_l3_bf16"}) {
    const TraceCalls trace = recorded(name);
    const FreeRun free = run<PlainFp32>(trace);
    EXPECT_TRUE(free.alarm.passed()) << name;
    ASSERT_EQ(free.rows.size(), static_cast<size_t>(trace.constants().layers + 1));
    for (const DriftRow& row : free.rows) {
      EXPECT_EQ(row.drift, row.plain);
      EXPECT_GT(row.drift, 0);
    }
    ++traces;
  }
  EXPECT_EQ(traces, 4);
}

TEST(FreeRun, ErrorsThatAddUpRing) {
  const TraceCalls narrow = recorded("hf_v4_h256_l4_bf16"), wide = recorded("hf_v4_h256_l4_f32");
  const FreeRun truncated = run<Truncating>(narrow);
  EXPECT_FALSE(holds(truncated, "growth"));
  EXPECT_LT(truncated.rows.back().log_growth, -5e-3);
  EXPECT_FALSE(holds(run<Bf16Coefficients>(wide), "drift"));
  EXPECT_FALSE(holds(run<Transposed>(narrow), "drift"));
  EXPECT_FALSE(holds(run<NotANumber>(wide), "nan and infinity"));
}

}  // namespace
}  // namespace fmhc::cli
