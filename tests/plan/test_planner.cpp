// The planner on a table of its own: ranges, devices, switches, hints, purity.
#include "plan/planner.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>

#include "fake_kernels.h"
#include "plan/split_k.h"
#include "plan/tuned.h"

namespace fmhc {
namespace {

using test::kFakeKernels;

PlanData plan_of(const Problem& problem, const Target& target, const Hints& hints = {}) {
  PlanData plan;
  fmhc_diag diag{};
  EXPECT_EQ(choose_kernels(kFakeKernels, problem, target, hints, Build::kThisBuild, &plan, &diag), FMHC_OK)
      << diag.text;
  return plan;
}

const char* kernel_at(const PlanData& plan, int64_t tokens) {
  return kFakeKernels[plan.range_for(tokens).kernel].name;
}

// The least predicted time over all rows that can serve, asked for this token count alone.
Choice direct_choice(const Problem& problem, const Target& target, const Hints& hints, int64_t tokens) {
  Choice best;
  double best_us = 0;
  for (int index = 0; index < static_cast<int>(std::size(kFakeKernels)); ++index) {
    if (eligible(kFakeKernels[index], problem, target, hints, Build::kThisBuild, nullptr) != FMHC_OK)
      continue;
    const Choice choice = choice_of(kFakeKernels, index, problem, target, hints, tokens);
    const double us = predicted_us(kFakeKernels[index], problem, target, tokens, choice.split_k);
    if (best.kernel < 0 || us < best_us) {
      best = choice;
      best_us = us;
    }
  }
  return best;
}

TEST(Planner, RangesEqualTheDirectChoice) {
  std::mt19937_64 random(7);
  int checked = 0;
  std::set<std::string> seen;
  for (const char* target_name : {"h200", "a100", "cpu-avx512"}) {
    for (const int32_t coresident : {0, 64}) {
      for (const int32_t policy : {FMHC_SPLIT_AUTO, FMHC_SPLIT_SGLANG}) {
        const Target target = test::named_target(target_name);
        Problem problem = test::problem_of(FMHC_PRE, 1 << 20);
        problem.coresident_units = coresident;
        const Hints hints{0, policy, nullptr};
        const PlanData plan = plan_of(problem, target, hints);
        ASSERT_LT(plan.num_ranges, kMaxRanges);
        for (int round = 0; round < 200; ++round) {
          const auto tokens = static_cast<int64_t>(random() % (1ull << (1 + random() % 20))) + 1;
          const Range& range = plan.range_for(tokens);
          const Choice ranged{range.kernel, range.split_k, range.variant};
          EXPECT_EQ(ranged, direct_choice(problem, target, hints, tokens)) << target_name << " T " << tokens;
          seen.insert(kFakeKernels[range.kernel].name);
          ++checked;
        }
      }
    }
  }
  EXPECT_EQ(checked, 2400);
  EXPECT_GE(seen.size(), 4u);  // the table is such that kernels trade places
}

TEST(Planner, RangesCoverEveryCountOnce) {
  for (const int64_t most : {0, 1, 2, 127, 128, 129, 1000, 100'000}) {
    const PlanData plan = plan_of(test::problem_of(FMHC_PRE, most), test::named_target("h200"));
    ASSERT_GE(plan.num_ranges, 1);
    int64_t last = 0;
    for (int index = 0; index < plan.num_ranges; ++index) {
      EXPECT_GT(plan.ranges[index].last_tokens, last);
      last = plan.ranges[index].last_tokens;
    }
    EXPECT_EQ(last, std::max<int64_t>(most, 1));
  }
}

TEST(Planner, ScratchIsThatOfTheWorstRange) {
  const Problem problem = test::problem_of(FMHC_PRE, 10'000);
  const Target target = test::named_target("h200");
  const PlanData plan = plan_of(problem, target, {0, 0, "cuda.sm90.pre.split"});
  uint64_t most = 0;
  for (int64_t tokens = 1; tokens <= problem.max_tokens; ++tokens) {
    const int32_t split = split_auto(tokens, 16384, target.num_units, false);
    most = std::max<uint64_t>(most, test::partial_bytes(problem, target, tokens, split));
  }
  EXPECT_EQ(plan.scratch_bytes, most);
}

// Two devices that differ in their multiprocessors get plans of their own, called in turn; the index means
// nothing.
TEST(Planner, NothingIsKeyedOnTheDeviceIndex) {
  const Problem problem = test::problem_of(FMHC_PRE, 4096);
  Target devices[] = {test::named_target("h200", 132), test::named_target("h200", 16)};
  devices[1].device_index = 1;
  int differ = 0;
  for (int round = 0; round < 10; ++round) {
    for (const int64_t tokens : {1, 64, 640, 1280, 4096}) {
      int32_t splits[2];
      for (int index = 0; index < 2; ++index) {
        const PlanData plan = plan_of(problem, devices[index], {0, 0, "cuda.sm90.pre.split"});
        splits[index] = plan.range_for(tokens).split_k;
        EXPECT_EQ(splits[index], split_auto(tokens, 16384, devices[index].num_units, false));
        Target swapped = devices[index];
        swapped.device_index = 1 - index;
        EXPECT_EQ(plan_of(problem, swapped, {0, 0, "cuda.sm90.pre.split"}).range_for(tokens).split_k,
                  splits[index]);
      }
      differ += splits[0] != splits[1] ? 1 : 0;
    }
  }
  EXPECT_EQ(differ, 20);  // at 1 and 64 tokens; above, the length of a slice decides
}

TEST(Planner, HigherCpuTargetsWinAndTheReferenceIsLast) {
  const Target target = test::named_target("cpu-avx512");
  for (const int64_t tokens : {1, 64, 5000}) {
    EXPECT_STREQ(kernel_at(plan_of(test::problem_of(FMHC_PRE, 5000), target), tokens), "cpu.avx3.pre");
  }
  EXPECT_STREQ(kernel_at(plan_of(test::problem_of(FMHC_PRE, 8), target, {0, 0, "cpu.avx2"}), 8),
               "cpu.avx2.pre");
  EXPECT_STREQ(kernel_at(plan_of(test::problem_of(FMHC_PRE, 8), target, {0, 0, "ref"}), 8), "ref.pre");
}

// One arithmetic whatever T and max_tokens are.
TEST(Planner, BatchInvariantPlansKeepOneArithmetic) {
  std::set<std::string> plain, invariant;
  for (const int64_t most : {1, 8, 300, 5000, 1 << 20}) {
    for (const int32_t flag : {0, 1}) {
      Problem problem = test::problem_of(FMHC_PRE, most);
      problem.batch_invariant = flag;
      const PlanData plan = plan_of(problem, test::named_target("h200"));
      for (int index = 0; index < plan.num_ranges; ++index) {
        const Range& range = plan.ranges[index];
        (flag != 0 ? invariant : plain).insert(kFakeKernels[range.kernel].name);
        if (flag != 0) {
          EXPECT_EQ(range.split_k, 16);
        }
      }
    }
  }
  EXPECT_EQ(plain.size(), 2u);
  EXPECT_EQ(invariant, std::set<std::string>{"cuda.sm90.pre.split"});
}

// A kernel for few tokens is one range of a plan for many, stands alone in a plan for few, and is refused
// beyond its reach, batch-invariant or not.
TEST(Planner, KernelsForFewTokens) {
  KernelEntry kernels[] = {
      test::row("cuda.decode.pre", FMHC_PRE, FMHC_CUDA, {.max_tokens = 64}),
      test::row("cuda.portable.pre", FMHC_PRE, FMHC_CUDA, {.residual_visits = 2, .speed = 0.1})};
  const Target target = test::named_target("h200");
  for (const int32_t invariant : {0, 1}) {
    for (const int64_t most : {1, 64, 65, 4096}) {
      Problem problem = test::problem_of(FMHC_PRE, most);
      problem.batch_invariant = invariant;
      PlanData plan;
      ASSERT_EQ(choose_kernels(kernels, problem, target, {}, Build::kThisBuild, &plan, nullptr), FMHC_OK);
      EXPECT_EQ(plan.range_for(1).kernel, invariant);  // one arithmetic: that of the kernel for all counts
      EXPECT_EQ(plan.range_for(most).kernel, invariant != 0 || most > 64 ? 1 : 0);
      fmhc_diag diag{};
      const Hints hints{0, 0, "cuda.decode"};
      EXPECT_EQ(choose_kernels(kernels, problem, target, hints, Build::kThisBuild, &plan, &diag),
                most > 64 ? FMHC_UNSUPPORTED : FMHC_OK);
      EXPECT_EQ(std::strstr(diag.text, "serves up to 64") != nullptr, most > 64);
    }
  }
}

struct Refused {
  const char* target;
  Hints hints;
  int32_t batch_invariant;
  int32_t code;
  const char* text;
};

TEST(Planner, HintsAreObeyedOrRefused) {
  const Refused cases[] = {
      {"h200", {0, 0, "nothing"}, 0, FMHC_INVALID, "\"nothing\""},
      {"h200", {0, 0, "cuda.sm9"}, 0, FMHC_INVALID, "\"cuda.sm9\""},
      {"h200", {0, 0, "ref"}, 0, FMHC_UNSUPPORTED, "runs on a CPU"},
      {"cpu-avx2", {0, 0, "cuda"}, 0, FMHC_UNSUPPORTED, "runs on a CUDA device"},
      {"h200", {0, 0, "cuda.sm100"}, 0, FMHC_UNSUPPORTED, "not built"},
      {"h200", {0, 0, "cuda.sm90.pre.wait"}, 0, FMHC_UNSUPPORTED, "coresident_units is 0"},
      {"h200", {-1, 0, nullptr}, 0, FMHC_INVALID, "split_k is -1"},
      {"h200", {257, 0, nullptr}, 0, FMHC_INVALID, "1..256"},
      {"h200", {0, 2, nullptr}, 0, FMHC_INVALID, "split_policy is 2"},
      {"h200", {2, 1, nullptr}, 0, FMHC_INVALID, "one of the two"},
      {"h200", {0, 1, nullptr}, 1, FMHC_INVALID, "batch_invariant"},
      {"h200", {4, 0, "cuda.portable"}, 0, FMHC_UNSUPPORTED, "does not split K"},
      {"h200", {0, 1, "cuda.portable"}, 0, FMHC_UNSUPPORTED, "split_policy is sglang"},
  };
  for (const Refused& refused : cases) {
    Problem problem = test::problem_of(FMHC_PRE, 100);
    problem.batch_invariant = refused.batch_invariant;
    PlanData plan;
    fmhc_diag diag{};
    EXPECT_EQ(choose_kernels(kFakeKernels, problem, test::named_target(refused.target), refused.hints,
                             Build::kThisBuild, &plan, &diag),
              refused.code);
    EXPECT_NE(std::strstr(diag.text, refused.text), nullptr) << diag.text;
  }
  const Problem problem = test::problem_of(FMHC_PRE, 100);
  for (const int32_t split : {1, 3, 53, 256}) {
    const PlanData plan = plan_of(problem, test::named_target("h200"), {split, 0, "cuda.sm90"});
    EXPECT_EQ(plan.range_for(50).split_k, split);
  }
}

TEST(Planner, PlansForWhatIsNotBuiltOnlyWhenAsked) {
  const Problem problem = test::problem_of(FMHC_PRE, 4096);
  const Target target = test::named_target("b200");
  PlanData plan;
  ASSERT_EQ(choose_kernels(kFakeKernels, problem, target, {}, Build::kEveryBackend, &plan, nullptr), FMHC_OK);
  EXPECT_STREQ(kernel_at(plan, 4096), "cuda.sm100.pre");
  EXPECT_STRNE(kernel_at(plan_of(problem, target), 4096), "cuda.sm100.pre");
}

TEST(Planner, IsPure) {
  fmhc_counters_t before{sizeof before, 0, 0, 0, 0, 0, 0, 0};
  fmhc_counters(&before);
  for (const int64_t most : {0, 1, 77, 100'000}) {
    const Problem problem = test::problem_of(FMHC_PRE, most);
    const PlanData first = plan_of(problem, test::named_target("h200"));
    const PlanData second = plan_of(problem, test::named_target("h200"));
    EXPECT_EQ(std::memcmp(&first, &second, sizeof first), 0);
  }
  fmhc_counters_t after{sizeof after, 0, 0, 0, 0, 0, 0, 0};
  fmhc_counters(&after);
  EXPECT_EQ(std::memcmp(&before, &after, sizeof before), 0);
}

TEST(Cost, MeasuredPointsCorrectTheModel) {
  const KernelEntry& kernel = kFakeKernels[1];
  const Problem problem = test::problem_of(FMHC_PRE, 4096);
  const Target target = test::named_target("h200");
  const auto model = [&](int64_t tokens) { return corrected_us({}, kernel, problem, target, tokens, 4); };
  const TunedPoint points[] = {
      {kernel.name, 4096, 16, 3 * model(16), "H200", "2026-12-01"},
      {kernel.name, 4096, 256, 2 * model(256), "H200", "2026-12-01"},
      {kernel.name, 7168, 16, 50 * model(16), "H200", "2026-12-01"},
      {"cuda.sm90", 4096, 16, 50 * model(16), "H200", "2026-12-01"},
  };
  const auto factor = [&](int64_t tokens) {
    return corrected_us(points, kernel, problem, target, tokens, 4) / model(tokens);
  };
  EXPECT_NEAR(factor(1), 3, 1e-12);
  EXPECT_NEAR(factor(16), 3, 1e-12);
  EXPECT_NEAR(factor(64), 2.5, 1e-12);  // half way in log T
  EXPECT_NEAR(factor(256), 2, 1e-12);
  EXPECT_NEAR(factor(100'000), 2, 1e-12);
  Problem wide = problem;
  wide.residual_dtype = FMHC_FP32;
  EXPECT_EQ(corrected_us(points, kernel, wide, target, 16, 4), corrected_us({}, kernel, wide, target, 16, 4));
}

}  // namespace
}  // namespace fmhc
