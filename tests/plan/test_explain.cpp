// The explanation: valid JSON for every problem, the planner's own answers, and no byte past the buffer.
#include "plan/explain.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fake_kernels.h"
#include "plan/json_writer.h"

namespace fmhc {
namespace {

using Json = nlohmann::json;
using test::kFakeKernels;

Json explained(const Problem& problem, const Target& target, const Hints& hints = {}) {
  size_t size = 0;
  fmhc_diag diag{};
  EXPECT_EQ(explain(kFakeKernels, problem, target, hints, nullptr, 0, &size, &diag), FMHC_OK) << diag.text;
  std::string text(size, '?');
  EXPECT_EQ(explain(kFakeKernels, problem, target, hints, text.data(), size, &size, &diag), FMHC_OK);
  EXPECT_EQ(text.size(), size);
  EXPECT_EQ(text.find('\0'), size - 1);
  return Json::parse(text.c_str());
}

TEST(Explain, SaysWhatThePlanDoes) {
  const Problem problem = test::problem_of(FMHC_PRE, 4096);
  const Target target = test::named_target("h200");
  const Json json = explained(problem, target);
  PlanData plan;
  ASSERT_EQ(choose_kernels(kFakeKernels, problem, target, {}, Build::kThisBuild, &plan, nullptr), FMHC_OK);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["runnable"], true);
  EXPECT_TRUE(json["reason"].is_null());
  EXPECT_EQ(json["problem"]["op"], "pre");
  EXPECT_EQ(json["problem"]["residual_dtype"], "bf16");
  EXPECT_EQ(json["problem"]["consts"]["sinkhorn_iters"], 20);
  EXPECT_EQ(json["target"]["num_units"], 132);
  EXPECT_EQ(json["scratch_bytes"], plan.scratch_bytes);
  ASSERT_EQ(json["ranges"].size(), static_cast<size_t>(plan.num_ranges));
  int64_t from = 0;
  for (int index = 0; index < plan.num_ranges; ++index) {
    const Json& range = json["ranges"][static_cast<size_t>(index)];
    EXPECT_EQ(range["from"], from);
    EXPECT_EQ(range["to"], plan.ranges[index].last_tokens);
    EXPECT_EQ(range["kernel"], kFakeKernels[plan.ranges[index].kernel].name);
    EXPECT_EQ(range["split_k"], plan.ranges[index].split_k);
    EXPECT_GT(range["predicted_us"].get<double>(), 0);
    from = plan.ranges[index].last_tokens + 1;
  }
  EXPECT_EQ(json["kernel"], json["ranges"].back()["kernel"]);
}

TEST(Explain, EveryCandidateHasATimeOrAReason) {
  const Json json = explained(test::problem_of(FMHC_PRE, 64), test::named_target("h200"));
  ASSERT_EQ(json["candidates"].size(), std::size(kFakeKernels));
  const char* const reasons[] = {"coresident_units is 0", nullptr,         nullptr,        "not built",
                                 "runs on a CPU",         "runs on a CPU", "runs on a CPU"};
  double least = 1e30;
  for (size_t index = 0; index < std::size(kFakeKernels); ++index) {
    const Json& candidate = json["candidates"][index];
    EXPECT_EQ(candidate["kernel"], kFakeKernels[index].name);
    EXPECT_EQ(candidate["eligible"], reasons[index] == nullptr);
    if (reasons[index] == nullptr) {
      least = std::min(least, candidate["predicted_us"].get<double>());
    } else {
      EXPECT_NE(candidate["reason"].get<std::string>().find(reasons[index]), std::string::npos);
    }
  }
  EXPECT_EQ(json["predicted_us"], least);
}

TEST(Explain, PlansForABackendThatIsNotBuilt) {
  const Json json =
      explained(test::problem_of(FMHC_PRE, 64), test::named_target("b200"), {0, 0, "cuda.sm100"});
  EXPECT_EQ(json["runnable"], false);
  EXPECT_EQ(json["kernel"], "cuda.sm100.pre");
  EXPECT_NE(json["reason"].get<std::string>().find("not built"), std::string::npos);
  EXPECT_EQ(json["candidates"][3]["not_built"], kFakeKernels[3].not_built);
  EXPECT_TRUE(json["candidates"][2]["not_built"].is_null());
  EXPECT_EQ(json["candidates"][3]["eligible"], true);
}

TEST(Explain, AnswersTheSplitWhereNothingServes) {
  const Json json = explained(test::problem_of(FMHC_PROJECT, 1024), test::named_target("h200"),
                              {0, FMHC_SPLIT_SGLANG, nullptr});
  EXPECT_TRUE(json["kernel"].is_null());
  EXPECT_EQ(json["split_k"], 8);
  EXPECT_EQ(json["ranges"].size(), 0u);
  fmhc_diag diag{};
  size_t size = 0;
  EXPECT_EQ(explain(kFakeKernels, test::problem_of(FMHC_PRE, 1), test::named_target("h200"), {-3, 0, nullptr},
                    nullptr, 0, &size, &diag),
            FMHC_INVALID);
}

TEST(Explain, StaysInsideTheBuffer) {
  const Problem problem = test::problem_of(FMHC_PRE, 300);
  const Target target = test::named_target("h200");
  size_t whole = 0;
  ASSERT_EQ(fmhc_plan_explain(&problem, &target, nullptr, nullptr, 0, &whole, nullptr), FMHC_OK);
  int cut = 0;
  for (size_t capacity = 0; capacity <= whole + 1; ++capacity) {
    std::vector<char> buffer(capacity + 8, '#');
    size_t needed = 0;
    fmhc_diag diag{};
    const int32_t code =
        fmhc_plan_explain(&problem, &target, nullptr, buffer.data(), capacity, &needed, &diag);
    EXPECT_EQ(code, capacity < whole ? FMHC_RESOURCE : FMHC_OK);
    EXPECT_EQ(needed, whole);
    for (size_t index = capacity; index < buffer.size(); ++index) ASSERT_EQ(buffer[index], '#');
    if (capacity > 0 && capacity < whole) {
      ASSERT_EQ(buffer[0], '\0');
      ++cut;
    }
  }
  EXPECT_EQ(cut, static_cast<int>(whole) - 1);
  EXPECT_EQ(fmhc_plan_explain(&problem, &target, nullptr, nullptr, 10, nullptr, nullptr), FMHC_INVALID);
}

TEST(JsonWriter, EscapesAndNests) {
  char buffer[256];
  JsonWriter json(buffer, sizeof buffer);
  json.begin_object().key("a\"b").text("\\ \n \x01 \xff ok").key("n").integer(INT64_MIN);
  json.key("list").begin_array().number(0.5).number(1.0 / 0.0).boolean(true).begin_object().end_object();
  json.begin_array().end_array().text(nullptr).end_array().end_object();
  const size_t size = json.finish();
  EXPECT_EQ(size, std::strlen(buffer) + 1);
  const Json read = Json::parse(buffer);
  EXPECT_EQ(read["a\"b"], "\\ \n \x01 \u00ff ok");
  EXPECT_EQ(read["n"], INT64_MIN);
  EXPECT_EQ(read["list"].dump(), "[0.5,null,true,{},[],null]");
}

}  // namespace
}  // namespace fmhc
