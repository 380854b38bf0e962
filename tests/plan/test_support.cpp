// The support query and the real call agree, on the kernels of this build.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "fake_kernels.h"

namespace fmhc {
namespace {

template <typename T, size_t kCount>
T pick(std::mt19937_64& random, const T (&values)[kCount]) {
  return values[random() % kCount];
}

struct Tally {
  int supported = 0, declined = 0, invalid = 0;
};

void compare(const Problem& problem, const Target& target, const fmhc_hints& hints, Tally* tally) {
  fmhc_diag query{};
  fmhc_diag made{};
  fmhc_plan plan{};
  const int32_t answer = fmhc_supported(&problem, &target, &hints, &query);
  const int32_t code = fmhc_plan_make(&problem, &target, &hints, &plan, &made);
  ASSERT_EQ(answer, code) << query.text << " / " << made.text;
  ASSERT_STREQ(query.text, made.text);
  if (code == FMHC_OK) {
    ++tally->supported;
    for (const int64_t tokens : {int64_t{0}, int64_t{1}, problem.max_tokens}) {
      if (tokens > problem.max_tokens) continue;
      const char* kernel = fmhc_plan_kernel(&plan, tokens);
      ASSERT_NE(kernel, nullptr);
      ASSERT_GE(fmhc_plan_split_k(&plan, tokens), 1);
      ASSERT_TRUE(hints.kernel == nullptr || matches_name(kernel, hints.kernel)) << kernel;
    }
    return;
  }
  ASSERT_TRUE(code == FMHC_UNSUPPORTED || code == FMHC_INVALID) << code;
  ASSERT_NE(made.text[0], '\0');
  ++(code == FMHC_INVALID ? tally->invalid : tally->declined);
}

TEST(Support, QueryAgreesWithPlanMakeAtRandomPoints) {
  std::mt19937_64 random(20261201);
  Tally tally;
  for (int round = 0; round < 1000; ++round) {
    Problem problem =
        test::problem_of(static_cast<int32_t>(1 + random() % 8), pick(random, {0, 1, 63, 64, 65, 4096}),
                         pick(random, {1, 7, 64, 250, 256, 512, 4096, 7168}));
    problem.streams = pick(random, {1, 2, 3, 4, 4, 4, 8});
    problem.residual_dtype = pick(random, {FMHC_BF16, FMHC_BF16, FMHC_FP16, FMHC_FP32, FMHC_FP64});
    problem.projection = pick(random, {FMHC_CLASS_F, FMHC_CLASS_F, FMHC_CLASS_F2, FMHC_CLASS_R});
    problem.batch_invariant = pick(random, {0, 1});
    problem.strided = pick(random, {0, 1});
    problem.align_bytes = pick(random, {0, 2, 16, 16});
    problem.coresident_units = pick(random, {0, 128});
    const Target target =
        test::named_target(pick(random, {"cpu", "cpu", "cpu-sse4", "a100", "h200", "b200"}));
    fmhc_hints hints{};
    hints.struct_size = sizeof hints;
    hints.kernel = pick<const char*>(random, {nullptr, nullptr, "ref", "cpu", "cuda", "cpu.avx2"});
    hints.split_k = pick(random, {0, 0, 0, 1, 2});
    compare(problem, target, hints, &tally);
    if (testing::Test::HasFatalFailure()) FAIL() << "point " << round;
  }
  EXPECT_EQ(tally.supported + tally.declined + tally.invalid, 1000);
  EXPECT_GE(tally.supported, 50);
  EXPECT_GE(tally.declined, 50);
}

// The selector never picks a kernel whose own check would refuse, for any product of shapes and storage.
TEST(Support, ChosenKernelsFit) {
  int chosen = 0;
  for (const char* target_name :
       {"cpu", "cpu-sse4", "cpu-avx2", "cpu-avx512", "cpu-neon", "a100", "h200", "b200"}) {
    const Target target = test::named_target(target_name);
    for (const OpSpec* op : all_ops()) {
      for (const int32_t streams : {1, 2, 3, 4, 8}) {
        for (const int64_t hidden : {250, 256, 512}) {
          for (const int32_t dtype : {FMHC_BF16, FMHC_FP16, FMHC_FP32}) {
            Problem problem = test::problem_of(op->op, 9000, hidden);
            problem.streams = streams;
            problem.residual_dtype = dtype;
            PlanData plan;
            fmhc_diag diag{};
            if (choose_kernels(all_kernels(), problem, target, {}, Build::kEveryBackend, &plan, &diag) !=
                FMHC_OK) {
              continue;
            }
            for (int index = 0; index < plan.num_ranges; ++index) {
              const KernelEntry& kernel = all_kernels()[plan.ranges[index].kernel];
              EXPECT_EQ(kernel.op, problem.op);
              EXPECT_EQ(kernel.device_kind, target.device_kind);
              EXPECT_EQ(kernel.fit(problem, target, &diag), FMHC_OK) << kernel.name << ": " << diag.text;
              ++chosen;
            }
          }
        }
      }
    }
  }
  EXPECT_GE(chosen, 5 * 5 * 9);  // at least one operator on every CPU
}

// What a plan does with T tokens does not depend on how many more it could do: at every end of a range and
// beside it a plan for exactly T chooses the same.
TEST(Support, TheChoiceFollowsTheTokensAlone) {
  int checked = 0;
  for (const char* target_name : {"cpu-avx512", "a100", "h200", "b200"}) {
    const Target target = test::named_target(target_name);
    for (const OpSpec* op : all_ops()) {
      for (const int32_t invariant : {0, 1}) {
        Problem problem = test::problem_of(op->op, 9000);
        problem.batch_invariant = invariant;
        PlanData plan;
        ASSERT_EQ(choose_kernels(all_kernels(), problem, target, {}, Build::kEveryBackend, &plan, nullptr),
                  FMHC_OK);
        for (int index = 0; index < plan.num_ranges; ++index) {
          for (int64_t tokens = plan.ranges[index].last_tokens - 1;
               tokens <= plan.ranges[index].last_tokens + 1; ++tokens) {
            if (tokens < 1 || tokens > 9000) continue;
            Problem exact = problem;
            exact.max_tokens = tokens;
            PlanData small;
            ASSERT_EQ(choose_kernels(all_kernels(), exact, target, {}, Build::kEveryBackend, &small, nullptr),
                      FMHC_OK);
            const Range& ours = plan.range_for(tokens);
            const Range& theirs = small.range_for(tokens);
            EXPECT_EQ(ours.kernel, theirs.kernel) << op->name << " on " << target_name << ", T " << tokens;
            EXPECT_EQ(ours.split_k, theirs.split_k) << op->name << " on " << target_name << ", T " << tokens;
            ++checked;
          }
        }
      }
    }
  }
  EXPECT_GE(checked, 4 * 8 * 2 * 2);
}

}  // namespace
}  // namespace fmhc
