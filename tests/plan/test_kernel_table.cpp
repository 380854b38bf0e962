// Which kernel each problem gets, as a stored table: a change of a kernel's traits, fit or place shows in
// review. All backends are planned for, built or not, on simulated devices.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "fake_kernels.h"
#include "stored.h"

namespace fmhc {
namespace {

constexpr int64_t kMostTokens = 16384;

struct Switch {
  const char* name;
  bool projects, collapses;  // only for operators that do
  void (*set)(Problem&);
};

constexpr Switch kSwitches[] = {
    {"-", false, false, [](Problem&) {}},
    {"batch_invariant", false, false, [](Problem& p) { p.batch_invariant = 1; }},
    {"coresident_units 128", false, false, [](Problem& p) { p.coresident_units = 128; }},
    {"unaligned", false, false, [](Problem& p) { p.align_bytes = 0; }},
    {"class R", true, false, [](Problem& p) { p.projection = FMHC_CLASS_R; }},
    {"norm engine", false, true,
     [](Problem& p) {
       p.norm = FMHC_NORM_ENGINE;
       p.norm_weight_dtype = FMHC_BF16;
     }},
};

// "1024 cpu.avx2.pre, 16384 cuda.x.pre/4": the last token count of a range, its kernel, its split if there is
// one.
std::string ranges_of(const Problem& problem, const Target& target) {
  PlanData plan;
  fmhc_diag diag{};
  if (choose_kernels(all_kernels(), problem, target, {}, Build::kEveryBackend, &plan, &diag) != FMHC_OK)
    return "none";
  EXPECT_LT(plan.num_ranges, kMaxRanges);
  std::ostringstream text;
  for (int index = 0; index < plan.num_ranges; ++index) {
    const Range& range = plan.ranges[index];
    text << (index == 0 ? "" : "; ") << range.last_tokens << ' ' << all_kernels()[range.kernel].name;
    if (range.split_k > 1) text << '/' << range.split_k;
  }
  return text.str();
}

TEST(KernelTable, EqualsTheStoredOne) {
  std::ostringstream text;
  text << "op,target,hidden,dtype,switch,ranges\n";
  int rows = 0;
  for (const OpSpec* op : all_ops()) {
    for (const char* target : {"cpu-sse4", "cpu-avx512", "a100", "h20", "h200", "b200"}) {
      for (const int64_t hidden : {250, 4096, 7168}) {
        for (const int32_t dtype : {FMHC_BF16, FMHC_FP32}) {
          for (const Switch& change : kSwitches) {
            if ((change.projects && !op->projects) || (change.collapses && !op->collapses)) continue;
            Problem problem = test::problem_of(op->op, kMostTokens, hidden);
            problem.residual_dtype = dtype;
            change.set(problem);
            text << op->name << ',' << target << ',' << hidden << (dtype == FMHC_BF16 ? ",bf16," : ",fp32,")
                 << change.name << ',' << ranges_of(problem, test::named_target(target)) << '\n';
            ++rows;
          }
        }
      }
    }
  }
  EXPECT_EQ(rows, 36 * (8 * 4 + 4 + 5));  // four project, five collapse
  test::compare_with_stored("kernel_table.csv", text.str());
}

}  // namespace
}  // namespace fmhc
