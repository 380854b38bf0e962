// One plan, several threads: a run has no hidden state, and an executor gives the bits of the calling thread.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "calls.h"

namespace abi_test {
namespace {

// An executor of three threads that live for one call.
void spread(void*, int64_t count, void (*fn)(void*, int64_t), void* arg) {
  constexpr int64_t kThreads = 3;
  std::vector<std::thread> threads;
  for (int64_t first = 0; first < kThreads; ++first) {
    threads.emplace_back([=] {
      for (int64_t i = first; i < count; i += kThreads) fn(arg, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, ExecutorGivesTheSameBits) {
  const fmhc_executor executor{nullptr, 3, 0, spread};
  size_t cases = 0;
  for (const Op& op : ops()) {
    for (Options options : variants_of(op)) {
      options.tokens = 67;
      options.max_tokens = 67;
      for (const std::string& kernel : kernels_for(options)) {
        options.kernel = kernel.c_str();
        Call alone(options);
        Call spread_out(options);
        spread_out.args.executor = &executor;
        EXPECT_EQ(alone.run(), FMHC_OK) << alone.diag.text;
        EXPECT_EQ(spread_out.run(), FMHC_OK) << spread_out.diag.text;
        EXPECT_EQ(alone.read_outputs(), spread_out.read_outputs()) << options.describe();
        EXPECT_TRUE(spread_out.surroundings_intact()) << options.describe();
        ++cases;
      }
    }
  }
  EXPECT_GE(cases, 13u);
}

TEST(Threads, OnePlanServesManyCallers) {
  constexpr int kCallers = 4;
  constexpr int kRuns = 20;
  Options options;
  options.op = FMHC_SEAM;
  Call first(options);
  ASSERT_EQ(first.run(), FMHC_OK) << first.diag.text;
  const std::vector<unsigned char> wanted = first.read_outputs();
  int equal[kCallers] = {};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int run = 0; run < kRuns; ++run) {
        Call call(options);
        const bool good = fmhc_run(&first.plan, &call.args, &call.diag) == FMHC_OK;
        equal[caller] += good && call.read_outputs() == wanted ? 1 : 0;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const int count : equal) EXPECT_EQ(count, kRuns);
}

}  // namespace
}  // namespace abi_test
