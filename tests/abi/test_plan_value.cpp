// A plan is a value of this process and build; a call has a struct size, flags, threads and memory.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "calls.h"

namespace abi_test {
namespace {

TEST(PlanValue, CopiesRun) {
  Call call({});
  const fmhc_plan copy = call.plan;
  EXPECT_EQ(fmhc_run(&copy, &call.args, &call.diag), FMHC_OK) << call.diag.text;
  const std::vector<unsigned char> first = call.read_outputs();
  EXPECT_EQ(call.run(), FMHC_OK);
  EXPECT_EQ(call.read_outputs(), first);
}

TEST(PlanValue, EqualQuestionsGiveEqualPlans) {
  const Call first({});
  const Call second({});
  EXPECT_EQ(std::memcmp(&first.plan, &second.plan, sizeof first.plan), 0);
}

TEST(PlanValue, ForeignPlansAreRefused) {
  const struct {
    const char* id;
    std::function<void(fmhc_plan&)> spoil;
  } faults[] = {
      {"zeroed", [](fmhc_plan& plan) { plan = {}; }},
      {"zeroed but for its size",
       [](fmhc_plan& plan) {
         plan = {};
         plan.struct_size = sizeof plan;
         plan.abi = FMHC_ABI;
       }},
      {"struct_size", [](fmhc_plan& plan) { plan.struct_size -= 8; }},
      {"abi", [](fmhc_plan& plan) { plan.abi += 1; }},
      {"build id", [](fmhc_plan& plan) { plan.opaque[0] ^= 1; }},
      {"all ones", [](fmhc_plan& plan) { std::memset(&plan, 0xff, sizeof plan); }},
  };
  for (const auto& fault : faults) {
    Call call({});
    fault.spoil(call.plan);
    const std::vector<unsigned char> before = call.all_bytes();
    EXPECT_EQ(call.run(), FMHC_INVALID) << fault.id;
    EXPECT_NE(std::strstr(call.diag.text, "plan"), nullptr) << call.diag.text;
    EXPECT_EQ(call.all_bytes(), before) << fault.id;
    EXPECT_EQ(fmhc_plan_scratch(&call.plan), 0u);
    EXPECT_EQ(fmhc_plan_state(&call.plan), 0u);
    EXPECT_EQ(fmhc_plan_packed(&call.plan), 0u);
    EXPECT_EQ(fmhc_plan_split_k(&call.plan, 1), 0);
    EXPECT_EQ(fmhc_plan_kernel(&call.plan, 1), nullptr);
    EXPECT_EQ(fmhc_state_init(&call.plan, nullptr, 0, nullptr, nullptr), FMHC_INVALID);
    EXPECT_EQ(fmhc_prepare(&call.plan, &call.args.fn, nullptr, 0, nullptr, nullptr), FMHC_INVALID);
  }
  Call call({});
  EXPECT_EQ(fmhc_run(nullptr, &call.args, &call.diag), FMHC_INVALID);
  EXPECT_EQ(fmhc_plan_kernel(nullptr, 1), nullptr);
}

TEST(PlanValue, TokenCountsOutsideThePlan) {
  const Call call({});
  for (const int64_t tokens : {int64_t{-1}, call.problem.max_tokens + 1, INT64_MAX}) {
    EXPECT_EQ(fmhc_plan_split_k(&call.plan, tokens), 0);
    EXPECT_EQ(fmhc_plan_kernel(&call.plan, tokens), nullptr);
  }
  for (const int64_t tokens : {int64_t{0}, int64_t{1}, call.problem.max_tokens}) {
    EXPECT_GE(fmhc_plan_split_k(&call.plan, tokens), 1);
    EXPECT_NE(fmhc_plan_kernel(&call.plan, tokens), nullptr);
  }
}

void run_nothing(void*, int64_t, void (*)(void*, int64_t), void*) {}

TEST(CallFaults, AreRefusedByName) {
  static fmhc_executor executor{};
  static int elsewhere = 0;
  const struct {
    const char* named;
    std::function<void(fmhc_args&)> spoil;
  } faults[] = {
      {"args.struct_size", [](fmhc_args& args) { args.struct_size = 0; }},
      {"args.struct_size", [](fmhc_args& args) { args.struct_size = 7; }},
      {"args.struct_size", [](fmhc_args& args) { args.struct_size = sizeof args + 8; }},
      {"args.flags", [](fmhc_args& args) { args.flags = 1; }},
      {"stream", [](fmhc_args& args) { args.stream = &elsewhere; }},
      {"executor.parallel_for",
       [](fmhc_args& args) {
         executor = {nullptr, 1, 0, nullptr};
         args.executor = &executor;
       }},
      {"executor.threads",
       [](fmhc_args& args) {
         executor = {nullptr, 0, 0, run_nothing};
         args.executor = &executor;
       }},
  };
  for (const auto& fault : faults) {
    Call call({});
    fault.spoil(call.args);
    const std::vector<unsigned char> before = call.all_bytes();
    EXPECT_EQ(call.run(), FMHC_INVALID) << fault.named;
    EXPECT_EQ(std::string_view(call.diag.text).substr(0, std::strlen(fault.named)), fault.named)
        << call.diag.text;
    EXPECT_EQ(call.all_bytes(), before) << fault.named;
  }
  Call call({});
  EXPECT_EQ(fmhc_run(&call.plan, nullptr, &call.diag), FMHC_INVALID);
  EXPECT_STREQ(call.diag.text, "args is NULL");
}

// An older caller's struct ends earlier; what it lacks reads as zero.
TEST(CallFaults, ShorterArgsAreRead) {
  Call call({});
  call.args.struct_size = offsetof(fmhc_args, stream);
  EXPECT_EQ(call.run(), FMHC_OK) << call.diag.text;
}

TEST(CallFaults, ScratchIsCheckedWhereItIsNeeded) {
  size_t needing = 0;
  for (const Op& op : ops()) {
    Options options;
    options.op = op.op;
    for (const std::string& kernel : kernels_for(options)) {
      options.kernel = kernel.c_str();
      const auto expect = [&](auto spoil) {
        Call call(options);
        spoil(call);
        EXPECT_EQ(call.run(), FMHC_INVALID) << options.describe();
        EXPECT_EQ(std::strncmp(call.diag.text, "scratch", 7), 0) << call.diag.text;
      };
      if (Call(options).scratch.size() == 0) continue;
      ++needing;
      expect([](Call& call) { call.args.scratch = nullptr; });
      expect([](Call& call) { call.args.scratch_bytes -= 1; });
      expect([](Call& call) { call.args.scratch = call.scratch.data() + 8; });
      expect([](Call& call) { call.args.scratch = const_cast<void*>(call.args.residual.data); });
    }
  }
  std::printf("%zu kernels need scratch\n", needing);
}

TEST(CallFaults, NothingToPrepare) {
  Call call({});
  if (fmhc_plan_packed(&call.plan) != 0) GTEST_SKIP() << "the chosen kernel packs fn";
  EXPECT_EQ(fmhc_prepare(&call.plan, &call.args.fn, call.scratch.data(), 0, nullptr, &call.diag),
            FMHC_INVALID);
  EXPECT_NE(std::strstr(call.diag.text, "fn"), nullptr) << call.diag.text;
}

TEST(Presets, KnowTheModels) {
  const struct {
    const char* model;
    float rms_eps;
    int32_t carried;
  } presets[] = {
      {"deepseek_v4", 1e-6f, 0}, {"deepseek_v41", 1e-20f, 1}, {"glm5", 1e-5f, 0}, {"paper", 1e-6f, 0}};
  for (const auto& preset : presets) {
    fmhc_problem problem{};
    problem.hidden = 77;
    EXPECT_EQ(fmhc_preset(preset.model, &problem, nullptr), FMHC_OK);
    EXPECT_EQ(problem.consts.rms_eps, preset.rms_eps) << preset.model;
    EXPECT_EQ(problem.consts.post_mult, 2.0f) << preset.model;
    EXPECT_EQ(problem.consts.sinkhorn_iters, 20) << preset.model;
    EXPECT_EQ(problem.carried_pre, preset.carried) << preset.model;
    EXPECT_EQ(problem.hidden, 77) << "a preset leaves everything else alone";
  }
}

}  // namespace
}  // namespace abi_test
