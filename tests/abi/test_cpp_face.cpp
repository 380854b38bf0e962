// flashmhc.hpp: the signatures that users compile against, and one trip through them.
#include <flashmhc/flashmhc.hpp>

#include <gtest/gtest.h>

#include <concepts>
#include <type_traits>

namespace {

using flashmhc::Plan;
using flashmhc::Result;
using flashmhc::Shape;
using flashmhc::Status;

// Stored signatures: a change here is a change for every user.
static_assert(std::same_as<decltype(&flashmhc::query_target), Result<fmhc_target> (*)(fmhc_device, int32_t)>);
static_assert(std::same_as<decltype(&flashmhc::named_target), Result<fmhc_target> (*)(const char*)>);
static_assert(std::same_as<decltype(&flashmhc::make_problem),
                           Result<fmhc_problem> (*)(const char*, fmhc_op, const Shape&)>);
static_assert(std::same_as<decltype(&flashmhc::supported),
                           Status (*)(const fmhc_problem&, const fmhc_target&, const fmhc_hints*)>);
static_assert(std::same_as<decltype(&flashmhc::make_in),
                           fmhc_in (*)(const void*, fmhc_dtype, std::initializer_list<int64_t>)>);
static_assert(std::same_as<decltype(&flashmhc::make_out),
                           fmhc_out (*)(void*, fmhc_dtype, std::initializer_list<int64_t>)>);
static_assert(std::same_as<decltype(&flashmhc::sized<fmhc_args>), fmhc_args (*)()>);
static_assert(std::same_as<decltype(&Plan::make),
                           Result<Plan> (*)(const fmhc_problem&, const fmhc_target&, const fmhc_hints*)>);
static_assert(std::same_as<decltype(&Plan::run), Status (Plan::*)(const fmhc_args&) const>);
static_assert(
    std::same_as<decltype(&Plan::prepare), Status (Plan::*)(const fmhc_in&, void*, size_t, void*) const>);
static_assert(std::same_as<decltype(&Plan::init_state), Status (Plan::*)(void*, size_t, void*) const>);
static_assert(std::same_as<decltype(&Plan::scratch_bytes), size_t (Plan::*)() const>);
static_assert(std::same_as<decltype(&Plan::state_bytes), size_t (Plan::*)() const>);
static_assert(std::same_as<decltype(&Plan::packed_bytes), size_t (Plan::*)() const>);
static_assert(std::same_as<decltype(&Plan::split_k), int32_t (Plan::*)(int64_t) const>);
static_assert(std::same_as<decltype(&Plan::kernel), const char* (Plan::*)(int64_t) const>);
static_assert(std::same_as<decltype(&Plan::c_plan), const fmhc_plan& (Plan::*)() const>);
static_assert(std::is_trivially_copyable_v<Plan> && std::is_trivially_copyable_v<Result<Plan>>);

TEST(CppFace, RunsAnExpand) {
  const auto target = flashmhc::query_target(FMHC_CPU);
  ASSERT_TRUE(target) << target.status().text();
  const auto problem = flashmhc::make_problem("deepseek_v41", FMHC_EXPAND, {4, 3, 2, FMHC_FP32});
  ASSERT_TRUE(problem) << problem.status().text();
  EXPECT_EQ(problem->carried_pre, 0);
  EXPECT_TRUE(flashmhc::supported(*problem, *target));
  const auto plan = Plan::make(*problem, *target);
  ASSERT_TRUE(plan) << plan.status().text();
  const float embedding[2][3] = {{1, 2, 3}, {4, 5, 6}};
  float streams[2][4][3] = {};
  auto args = flashmhc::sized<fmhc_args>();
  args.residual = flashmhc::make_in(embedding, FMHC_FP32, {2, 3});
  args.residual_out = flashmhc::make_out(streams, FMHC_FP32, {2, 4, 3});
  const Status status = plan->run(args);
  ASSERT_TRUE(status) << status.text();
  EXPECT_EQ(streams[1][3][2], 6);
  EXPECT_EQ(streams[0][2][0], 1);
}

TEST(CppFace, CarriedMixFollowsTheModel) {
  for (const fmhc_op op : {FMHC_FINISH, FMHC_PRE, FMHC_SEAM, FMHC_CONTRACT}) {
    EXPECT_EQ(flashmhc::make_problem("deepseek_v41", op, {4, 3, 2, FMHC_FP32})->carried_pre, 1);
    EXPECT_EQ(flashmhc::make_problem("glm5", op, {4, 3, 2, FMHC_FP32})->carried_pre, 0);
  }
}

TEST(CppFace, FailuresCarryCodeAndText) {
  const auto unknown = flashmhc::make_problem("abacus", FMHC_PRE, {4, 3, 2, FMHC_FP32});
  EXPECT_FALSE(unknown);
  EXPECT_EQ(unknown.status().code(), FMHC_INVALID);
  EXPECT_STREQ(unknown.status().code_name(), "FMHC_INVALID");
  EXPECT_NE(unknown.status().text().find("abacus"), std::string_view::npos);
  EXPECT_FALSE(flashmhc::named_target("abacus"));

  const auto target = flashmhc::query_target(FMHC_CPU);
  auto problem = flashmhc::make_problem("glm5", FMHC_PRE, {9, 3, 2, FMHC_FP32});
  ASSERT_TRUE(problem);
  const auto plan = Plan::make(*problem, *target);
  EXPECT_FALSE(plan);
  EXPECT_EQ(plan.status().text().substr(0, 15), "problem.streams");
  EXPECT_EQ(plan->kernel(1), nullptr);
  EXPECT_FALSE(plan->run(flashmhc::sized<fmhc_args>()));
}

TEST(CppFace, RanksAboveFourAreRefusedByTheLibrary) {
  constexpr fmhc_in tensor = flashmhc::make_in(nullptr, FMHC_BF16, {5, 4, 3, 2, 1});
  static_assert(tensor.rank == 5 && tensor.stride[3] == 1 && tensor.stride[0] == 24);
}

}  // namespace
