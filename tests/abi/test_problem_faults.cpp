// Everything that fmhc_plan_make and its neighbours must refuse: problem, target and hints, field by field.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "calls.h"

namespace abi_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint32_t kOneTooLong = 8;

struct IntFault {
  int32_t fmhc_problem::*field;
  const char* name;
  std::vector<int32_t> bad;
};

const IntFault kIntFaults[] = {
    {&fmhc_problem::op, "problem.op", {-1, 0, 9, 1000}},
    {&fmhc_problem::streams, "problem.streams", {-1, 0, 9}},
    {&fmhc_problem::residual_dtype, "problem.residual_dtype", {-1, 0, 5}},
    {&fmhc_problem::projection, "problem.projection", {-1, 0, 4}},
    {&fmhc_problem::norm, "problem.norm", {-1, 3}},
    {&fmhc_problem::norm_weight_dtype, "problem.norm_weight_dtype", {-1, FMHC_BF16, 5}},
    {&fmhc_problem::quant, "problem.quant", {-1, 3}},
    {&fmhc_problem::carried_pre, "problem.carried_pre", {-1, 2}},
    {&fmhc_problem::batch_invariant, "problem.batch_invariant", {-1, 2}},
    {&fmhc_problem::coresident_units, "problem.coresident_units", {-1, (1 << 20) + 1}},
    {&fmhc_problem::pdl, "problem.pdl", {-1, 2}},
    {&fmhc_problem::align_bytes, "problem.align_bytes", {-1, 3, 24, 512}},
    {&fmhc_problem::strided, "problem.strided", {-1, 2}},
};

struct FloatFault {
  float fmhc_consts::*field;
  const char* name;
  std::vector<float> bad;
};

const FloatFault kFloatFaults[] = {
    {&fmhc_consts::rms_eps, "problem.consts.rms_eps", {-1, -1e-30f, kNan, kInf}},
    {&fmhc_consts::pre_eps, "problem.consts.pre_eps", {-1, -1e-30f, kNan, kInf}},
    {&fmhc_consts::sinkhorn_eps, "problem.consts.sinkhorn_eps", {-1, -1e-30f, kNan, kInf}},
    {&fmhc_consts::norm_eps, "problem.consts.norm_eps", {-1, -1e-30f, kNan, kInf}},
    {&fmhc_consts::post_mult, "problem.consts.post_mult", {kNan, kInf, -kInf}},
};

struct ProblemFault {
  std::string id, named;
  int32_t code;
  std::function<void(fmhc_problem&)> apply;
};

// What depends on the operator: options that it does not have.
void add_option_faults(const Op& op, std::vector<ProblemFault>* faults) {
  const auto add = [&](const char* id, const char* named, std::function<void(fmhc_problem&)> apply) {
    faults->push_back({id, named, FMHC_INVALID, std::move(apply)});
  };
  if (op.collapses) {
    for (const int32_t dtype : {0, int32_t{FMHC_FP16}, int32_t{FMHC_FP64}}) {
      add("norm weight", "problem.norm_weight_dtype", [dtype](fmhc_problem& p) {
        p.norm = FMHC_NORM_ENGINE;
        p.norm_weight_dtype = dtype;
      });
    }
  } else {
    add("norm", "problem.norm", [](fmhc_problem& p) {
      p.norm = FMHC_NORM_ENGINE;
      p.norm_weight_dtype = FMHC_BF16;
    });
  }
  if (!op.carries) add("carried_pre", "problem.carried_pre", [](fmhc_problem& p) { p.carried_pre = 1; });
  if (!op.projects) {
    add("class", "problem.projection", [](fmhc_problem& p) { p.projection = FMHC_CLASS_F2; });
  }
  for (const int32_t iters : {-1, 1001, 0}) {
    // Only operators with a Sinkhorn need a round.
    if (iters == 0 && op.op != FMHC_FINISH && op.op != FMHC_PRE && op.op != FMHC_SEAM) continue;
    add("iters", "problem.consts.sinkhorn_iters",
        [iters](fmhc_problem& p) { p.consts.sinkhorn_iters = iters; });
  }
}

std::vector<ProblemFault> problem_faults(const Op& op) {
  std::vector<ProblemFault> faults;
  for (const IntFault& fault : kIntFaults) {
    for (const int32_t bad : fault.bad) {
      faults.push_back({fault.name + std::to_string(bad), fault.name, FMHC_INVALID,
                        [=](fmhc_problem& p) { p.*fault.field = bad; }});
    }
  }
  for (const FloatFault& fault : kFloatFaults) {
    for (const float bad : fault.bad) {
      faults.push_back({fault.name + std::to_string(bad), fault.name, FMHC_INVALID,
                        [=](fmhc_problem& p) { p.consts.*fault.field = bad; }});
    }
  }
  for (const int64_t bad : {int64_t{-1}, int64_t{0}, int64_t{1} << 61, INT64_MAX}) {
    faults.push_back({"hidden", "problem.hidden", FMHC_INVALID, [bad](fmhc_problem& p) { p.hidden = bad; }});
  }
  for (const int64_t bad : {int64_t{-1}, int64_t{1} << 61, INT64_MAX}) {
    faults.push_back(
        {"tokens", "problem.max_tokens", FMHC_INVALID, [bad](fmhc_problem& p) { p.max_tokens = bad; }});
  }
  for (const uint32_t bad : {0u, 4u, static_cast<uint32_t>(sizeof(fmhc_problem)) + kOneTooLong}) {
    faults.push_back(
        {"size", "problem.struct_size", FMHC_INVALID, [bad](fmhc_problem& p) { p.struct_size = bad; }});
  }
  for (const int32_t kind : {FMHC_QUANT_E4M3_128, FMHC_QUANT_MXFP8_32}) {
    faults.push_back(
        {"quant", "problem.quant", FMHC_UNSUPPORTED, [kind](fmhc_problem& p) { p.quant = kind; }});
  }
  add_option_faults(op, &faults);
  return faults;
}

// A refusal of the planner: the code, the name in the text, no plan.
void expect_refused(const fmhc_problem& problem, const fmhc_target& target, const fmhc_hints* hints,
                    int32_t code, const std::string& named, const std::string& id) {
  fmhc_plan plan;
  std::memset(&plan, 0xff, sizeof plan);
  const fmhc_plan before = plan;
  fmhc_diag diag{};
  EXPECT_EQ(fmhc_plan_make(&problem, &target, hints, &plan, &diag), code) << id;
  EXPECT_EQ(diag.code, code) << id;
  EXPECT_NE(std::string_view(diag.text).find(named), std::string_view::npos)
      << id << ": \"" << diag.text << "\" does not name " << named;
  EXPECT_EQ(std::memcmp(&plan, &before, sizeof plan), 0) << id << " wrote a plan";
  EXPECT_EQ(fmhc_supported(&problem, &target, hints, nullptr), code) << id;
}

class ProblemFaults : public testing::TestWithParam<Op> {};

TEST_P(ProblemFaults, AreRefusedByName) {
  Options options;
  options.op = GetParam().op;
  size_t cases = 0;
  for (const ProblemFault& fault : problem_faults(GetParam())) {
    fmhc_problem problem = make_problem(options);
    fault.apply(problem);
    expect_refused(problem, host_target(), nullptr, fault.code, fault.named, fault.id);
    ++cases;
  }
  EXPECT_GE(cases, 60u);
}

INSTANTIATE_TEST_SUITE_P(Ops, ProblemFaults, testing::ValuesIn(ops().begin(), ops().end()),
                         [](const testing::TestParamInfo<Op>& each) { return std::string(each.param.name); });

TEST(TargetFaults, AreRefusedByName) {
  const struct {
    const char* named;
    int32_t code;
    std::function<void(fmhc_target&)> apply;
  } faults[] = {
      {"target.struct_size", FMHC_INVALID, [](fmhc_target& t) { t.struct_size = 0; }},
      {"target.struct_size", FMHC_INVALID, [](fmhc_target& t) { t.struct_size = sizeof t + kOneTooLong; }},
      {"target.device_kind", FMHC_INVALID, [](fmhc_target& t) { t.device_kind = 0; }},
      {"target.device_kind", FMHC_INVALID, [](fmhc_target& t) { t.device_kind = 3; }},
      {"target.device_index", FMHC_INVALID, [](fmhc_target& t) { t.device_index = -1; }},
      {"target.num_units", FMHC_INVALID, [](fmhc_target& t) { t.num_units = 0; }},
  };
  for (const auto& fault : faults) {
    fmhc_target target = host_target();
    fault.apply(target);
    expect_refused(make_problem({}), target, nullptr, fault.code, fault.named, fault.named);
  }
}

TEST(HintFaults, AreRefusedByName) {
  Options project;
  project.op = FMHC_PROJECT;
  Options post;
  post.op = FMHC_POST;
  const struct {
    const char* named;
    int32_t code;
    const Options& options;
    std::function<void(fmhc_hints&)> apply;
  } faults[] = {
      {"hints.struct_size", FMHC_INVALID, project, [](fmhc_hints& h) { h.struct_size = 4; }},
      {"hints.split_k", FMHC_INVALID, project, [](fmhc_hints& h) { h.split_k = -1; }},
      {"hints.split_k", FMHC_INVALID, project, [](fmhc_hints& h) { h.split_k = 5; }},  // K has 4 blocks
      {"hints.split_k", FMHC_INVALID, project, [](fmhc_hints& h) { h.split_k = 1000; }},
      {"hints.split_policy", FMHC_INVALID, project, [](fmhc_hints& h) { h.split_policy = -1; }},
      {"hints.split_policy", FMHC_INVALID, project, [](fmhc_hints& h) { h.split_policy = 2; }},
      {"hints.split_k", FMHC_INVALID, project,
       [](fmhc_hints& h) {
         h.split_policy = FMHC_SPLIT_SGLANG;
         h.split_k = 1;
       }},
      {"hints.kernel", FMHC_INVALID, project, [](fmhc_hints& h) { h.kernel = "abacus"; }},
      {"hints.kernel", FMHC_INVALID, project, [](fmhc_hints& h) { h.kernel = "re"; }},
      {"ref.post", FMHC_UNSUPPORTED, project, [](fmhc_hints& h) { h.kernel = "ref.post"; }},
      {"hints.split_k", FMHC_UNSUPPORTED, post, [](fmhc_hints& h) { h.split_k = 2; }},
      {"hints.split_policy", FMHC_UNSUPPORTED, post,
       [](fmhc_hints& h) { h.split_policy = FMHC_SPLIT_SGLANG; }},
  };
  for (const auto& fault : faults) {
    fmhc_hints hints{};
    hints.struct_size = sizeof hints;
    fault.apply(hints);
    expect_refused(make_problem(fault.options), host_target(), &hints, fault.code, fault.named, fault.named);
  }
  fmhc_problem invariant = make_problem(project);
  invariant.batch_invariant = 1;
  fmhc_hints hints{};
  hints.struct_size = sizeof hints;
  hints.split_policy = FMHC_SPLIT_SGLANG;
  expect_refused(invariant, host_target(), &hints, FMHC_INVALID, "hints.split_policy", "batch invariant");
}

TEST(HintFaults, ForcedKernelsAreObeyed) {
  size_t forced = 0;
  for (const Op& op : ops()) {
    Options options;
    options.op = op.op;
    for (const std::string& name : kernels_for(options)) {
      options.kernel = name.c_str();
      const Call call(options);
      EXPECT_STREQ(fmhc_plan_kernel(&call.plan, options.tokens), name.c_str());
      ++forced;
    }
  }
  EXPECT_GE(forced, ops().size());
}

TEST(OtherFaults, NameTheArgument) {
  fmhc_diag diag{};
  fmhc_target target = host_target();
  fmhc_problem problem = make_problem({});
  fmhc_plan plan{};
  const auto expect = [&](int32_t code, const char* named) {
    EXPECT_EQ(code, FMHC_INVALID) << named;
    EXPECT_EQ(std::string_view(diag.text).substr(0, std::strlen(named)), named);
    diag = {};
  };
  expect(fmhc_plan_make(nullptr, &target, nullptr, &plan, &diag), "problem");
  expect(fmhc_plan_make(&problem, nullptr, nullptr, &plan, &diag), "target");
  expect(fmhc_plan_make(&problem, &target, nullptr, nullptr, &diag), "out");
  expect(fmhc_supported(nullptr, &target, nullptr, &diag), "problem");
  expect(fmhc_target_query(0, 0, &target, &diag), "device_kind");
  expect(fmhc_target_query(FMHC_CPU, 1, &target, &diag), "device_index");
  expect(fmhc_target_query(FMHC_CPU, 0, nullptr, &diag), "out");
  expect(fmhc_target_named(nullptr, &target, &diag), "name");
  expect(fmhc_target_named("cpu", nullptr, &diag), "out");
  expect(fmhc_target_named("abacus", &target, &diag), "target \"abacus\"");
  expect(fmhc_preset(nullptr, &problem, &diag), "model");
  expect(fmhc_preset("deepseek_v4", nullptr, &diag), "inout");
  expect(fmhc_preset("deepseek_v5", &problem, &diag), "model \"deepseek_v5\"");
  EXPECT_EQ(fmhc_counters(nullptr), FMHC_INVALID);
}

}  // namespace
}  // namespace abi_test
