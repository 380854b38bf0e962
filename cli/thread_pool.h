// A small pool behind an fmhc_executor: the caller's thread and threads - 1 workers take indices from one
// counter. One parallel_for at a time; others wait for their turn. Not for use from inside one of its own
// tasks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "flashmhc/flashmhc.h"

namespace fmhc::cli {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  const fmhc_executor* executor() const { return &executor_; }
  int threads() const { return executor_.threads; }

 private:
  using Task = void (*)(void* arg, int64_t i);

  static void parallel_for(void* ctx, int64_t count, Task task, void* arg);
  void work();
  void take_indices(Task task, void* arg, int64_t count);

  fmhc_executor executor_;
  std::mutex turn_;  // held for the whole of one parallel_for
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  uint64_t round_ = 0;
  int busy_ = 0;
  bool stop_ = false;
  Task task_ = nullptr;
  void* arg_ = nullptr;
  int64_t count_ = 0;
  std::atomic<int64_t> next_{0};
  std::vector<std::thread> workers_;
};

// What this machine offers, at least 1.
int hardware_threads();

}  // namespace fmhc::cli
