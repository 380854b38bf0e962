// No tokens is success for every operator and kernel: nothing is launched and nothing is written.
#include <gtest/gtest.h>

#include "calls.h"

namespace abi_test {
namespace {

fmhc_counters_t counters() {
  fmhc_counters_t now{};
  now.struct_size = sizeof now;
  fmhc_counters(&now);
  return now;
}

// Runs the call and expects that only the count of runs moved.
void expect_nothing_done(Call& call) {
  const std::vector<unsigned char> before = call.all_bytes();
  const fmhc_counters_t then = counters();
  EXPECT_EQ(call.run(), FMHC_OK) << call.options().describe() << ": " << call.diag.text;
  const fmhc_counters_t now = counters();
  EXPECT_EQ(now.runs, then.runs + 1);
  EXPECT_EQ(now.launches, then.launches) << call.options().describe();
  EXPECT_EQ(call.all_bytes(), before) << call.options().describe();
}

TEST(ZeroTokens, TouchNothing) {
  size_t cases = 0;
  for (const Op& op : ops()) {
    for (Options options : variants_of(op)) {
      for (const std::string& kernel : kernels_for(options)) {
        options.kernel = kernel.c_str();
        Options none = options;
        none.tokens = 0;
        Call empty(none);
        expect_nothing_done(empty);
        for (const Slot& each : slots()) {
          fmhc_in tensor = empty.get(each);
          tensor.data = nullptr;
          empty.set(each, tensor);
        }
        empty.args.scratch = nullptr;
        empty.args.scratch_bytes = 0;
        expect_nothing_done(empty);

        Call next(options);
        EXPECT_EQ(next.run(), FMHC_OK) << "a normal call after an empty one";
        ++cases;
      }
    }
  }
  EXPECT_GE(cases, 13u);  // at least the reference, for 8 operators, 5 of them in two variants
}

// Shapes are still those of the call.
TEST(ZeroTokens, AreStillChecked) {
  Options options;
  options.tokens = 0;
  Call call(options);
  call.args.layer_input.shape[1] += 1;
  EXPECT_EQ(call.run(), FMHC_INVALID);
  EXPECT_STREQ(call.diag.text, "layer_input.shape[1] is 65; expected 64");
}

TEST(ZeroTokens, APlanForNoneIsLegal) {
  Options options;
  options.tokens = options.max_tokens = 0;
  Call call(options);
  EXPECT_EQ(call.plan_code(), FMHC_OK) << call.diag.text;
  EXPECT_EQ(call.run(), FMHC_OK) << call.diag.text;
}

}  // namespace
}  // namespace abi_test
