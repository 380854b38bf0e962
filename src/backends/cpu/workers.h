// Runs numbered blocks of a call on the caller's threads. A worker is one index of the executor's loop: it
// takes blocks until none is left and owns piece `worker` of the scratch, so that two blocks never share
// memory, whatever threads the executor uses. Which worker takes a block changes no bit of the result.
#pragma once

#include <atomic>

#include "core/math.h"
#include "core/status.h"
#include "kernels/entry.h"

namespace fmhc::cpu {

inline int32_t check_executor(const fmhc_executor* executor, fmhc_diag* diag) {
  if (executor == nullptr) return FMHC_OK;
  if (executor->parallel_for == nullptr) return fail(diag, FMHC_INVALID, "executor.parallel_for is NULL");
  if (executor->threads < 1) {
    return fail(diag, FMHC_INVALID, "executor.threads is %d; accepted: >= 1", executor->threads);
  }
  return FMHC_OK;
}

// At most `most` workers: the pieces of scratch that the call has.
inline int64_t worker_count(const fmhc_executor* executor, int64_t blocks, int64_t most) {
  return executor == nullptr ? 1 : min64(min64(executor->threads, most), blocks);
}

// body(worker, block) for every block in [0, blocks), workers in [0, workers).
template <typename Body>
void run_blocks(const fmhc_executor* executor, int64_t workers, int64_t blocks, const Body& body) {
  if (workers == 1) {
    for (int64_t block = 0; block < blocks; ++block) body(0, block);
    return;
  }
  struct Loop {
    const Body& body;
    int64_t blocks;
    std::atomic<int64_t> next{0};
  };
  Loop loop{body, blocks};
  const auto work = [](void* arg, int64_t worker) {
    auto& shared = *static_cast<Loop*>(arg);
    for (int64_t block; (block = shared.next.fetch_add(1, std::memory_order_relaxed)) < shared.blocks;) {
      shared.body(worker, block);
    }
  };
  executor->parallel_for(executor->ctx, workers, work, &loop);
}

}  // namespace fmhc::cpu
