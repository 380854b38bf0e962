#include "cli/thread_pool.h"

#include <algorithm>

namespace fmhc::cli {

ThreadPool::ThreadPool(int threads) : executor_{this, std::max(threads, 1), 0, &ThreadPool::parallel_for} {
  for (int index = 1; index < executor_.threads; ++index) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  begin_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::take_indices(Task task, void* arg, int64_t count) {
  for (int64_t i = next_.fetch_add(1, std::memory_order_relaxed); i < count;
       i = next_.fetch_add(1, std::memory_order_relaxed)) {
    task(arg, i);
  }
}

void ThreadPool::work() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    begin_.wait(lock, [&] { return stop_ || round_ != seen; });
    if (stop_) return;
    seen = round_;
    lock.unlock();
    take_indices(task_, arg_, count_);
    lock.lock();
    if (--busy_ == 0) end_.notify_one();
  }
}

void ThreadPool::parallel_for(void* ctx, int64_t count, Task task, void* arg) {
  auto& pool = *static_cast<ThreadPool*>(ctx);
  if (count <= 1 || pool.workers_.empty()) {
    for (int64_t i = 0; i < count; ++i) task(arg, i);
    return;
  }
  const std::lock_guard turn(pool.turn_);
  {
    const std::lock_guard lock(pool.mutex_);
    pool.task_ = task;
    pool.arg_ = arg;
    pool.count_ = count;
    pool.next_.store(0, std::memory_order_relaxed);
    pool.busy_ = static_cast<int>(pool.workers_.size());
    ++pool.round_;
  }
  pool.begin_.notify_all();
  pool.take_indices(task, arg, count);
  std::unique_lock lock(pool.mutex_);
  pool.end_.wait(lock, [&] { return pool.busy_ == 0; });
}

int hardware_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace fmhc::cli
