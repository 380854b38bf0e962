// The pool behind the tool's executor: every index once, callers in turn, any count.
#include "cli/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>

namespace fmhc::cli {
namespace {

void count_index(void* arg, int64_t i) {
  ++(*static_cast<std::vector<int>*>(arg))[static_cast<size_t>(i)];
}

TEST(ThreadPool, EveryIndexOnce) {
  int64_t checked = 0;
  for (const int threads : {-1, 1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.executor()->threads, std::max(threads, 1));
    for (const int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (int round = 0; round < 20; ++round) {
        std::vector<int> seen(static_cast<size_t>(count));
        pool.executor()->parallel_for(pool.executor()->ctx, count, count_index, &seen);
        EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(count), 1));
        checked += count;
      }
    }
  }
  EXPECT_EQ(checked, 5 * 20 * 1074);
}

TEST(ThreadPool, CallersTakeTurns) {
  ThreadPool pool(3);
  std::vector<std::vector<int>> seen(4, std::vector<int>(500));
  std::vector<std::thread> callers;
  for (std::vector<int>& mine : seen) {
    callers.emplace_back([&pool, &mine] {
      for (int round = 0; round < 10; ++round) {
        pool.executor()->parallel_for(pool.executor()->ctx, 500, count_index, &mine);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const std::vector<int>& mine : seen) {
    EXPECT_EQ(mine, std::vector<int>(500, 10));
  }
}

}  // namespace
}  // namespace fmhc::cli
