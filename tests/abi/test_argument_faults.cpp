// operator x argument x fault: each is refused by name and nothing is written.
#include <gtest/gtest.h>

#include "faults.h"

namespace abi_test {
namespace {

constexpr size_t kLeastCases = 400;

class ArgumentFaults : public testing::TestWithParam<Op> {};

// Counts the refusals that are as they should be.
size_t refused(const Options& base, const std::vector<Fault>& faults) {
  size_t right = 0;
  for (const Fault& fault : faults) {
    Options options = base;
    options.strided = fault.strided ? 1 : 0;
    Call call(options);
    EXPECT_EQ(call.plan_code(), FMHC_OK) << call.diag.text;
    fault.apply(call);
    const std::vector<unsigned char> before = call.all_bytes();
    const int32_t code = call.run();
    const bool named = std::string_view(call.diag.text).find(fault.named) != std::string_view::npos;
    const bool untouched = before == call.all_bytes();
    const int32_t code_without_diag = fmhc_run(&call.plan, &call.args, nullptr);
    EXPECT_EQ(code, FMHC_INVALID) << options.describe() << ": " << fault.id;
    EXPECT_EQ(call.diag.code, code) << fault.id;
    EXPECT_EQ(code_without_diag, code) << fault.id;
    EXPECT_TRUE(named) << options.describe() << ": " << fault.id << ": \"" << call.diag.text
                       << "\" does not name " << fault.named;
    EXPECT_TRUE(untouched) << options.describe() << ": " << fault.id << " was refused after writing";
    right += code == FMHC_INVALID && named && untouched ? 1 : 0;
  }
  return right;
}

TEST_P(ArgumentFaults, AreRefusedByName) {
  for (const Options& options : variants_of(GetParam())) {
    const std::vector<Fault> faults = argument_faults(options);
    EXPECT_EQ(refused(options, faults), faults.size());
  }
}

// Every call that the faults start from is a good one.
TEST_P(ArgumentFaults, StartFromACallThatRuns) {
  for (Options options : variants_of(GetParam())) {
    for (options.strided = 0; options.strided <= 1; ++options.strided) {
      Call call(options);
      EXPECT_EQ(call.run(), FMHC_OK) << options.describe() << ": " << call.diag.text;
      EXPECT_TRUE(call.surroundings_intact()) << options.describe();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ArgumentFaults, testing::ValuesIn(ops().begin(), ops().end()),
                         [](const testing::TestParamInfo<Op>& each) { return std::string(each.param.name); });

TEST(ArgumentFaultTable, HasAtLeast400Cases) {
  size_t cases = 0;
  for (const Op& op : ops()) {
    for (const Options& options : variants_of(op)) cases += argument_faults(options).size();
  }
  std::printf("%zu argument faults\n", cases);
  EXPECT_GE(cases, kLeastCases);
}

// The head takes streams, expand takes none: the usual mix-up is a rank error that says so.
TEST(ArgumentFaultTable, StreamAxisMixUps) {
  const struct {
    int32_t op;
    int32_t rank;
    const char* text;
  } cases[] = {{FMHC_EXPAND, 3, "residual.rank is 3; expand takes rank 2"},
               {FMHC_HEAD, 2, "residual.rank is 2; head takes rank 3"},
               {FMHC_CONTRACT, 2, "residual.rank is 2; contract takes rank 3"}};
  for (const auto& test : cases) {
    Options options;
    options.op = test.op;
    Call call(options);
    call.args.residual.rank = test.rank;
    EXPECT_EQ(call.run(), FMHC_INVALID);
    EXPECT_STREQ(call.diag.text, test.text);
  }
}

}  // namespace
}  // namespace abi_test
