// Kernels that make life hard: writers that release their successor long before they write, readers that
// start early, kernels that hold the device busy, and one that faults.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace fmhc_gpu {

struct CopyList {
  static constexpr int kMost = 12;
  int count = 0;
  void* to[kMost];
  const void* from[kMost];
  int64_t bytes[kMost];

  void add(void* target, const void* source, int64_t size) {
    to[count] = target;
    from[count] = source;
    bytes[count++] = size;
  }
};

// Allows its dependents to start at once, sleeps, then copies.
void launch_late_writer(cudaStream_t stream, const CopyList& copies, uint64_t sleep_ns);
// Starts early by a programmatic dependency, waits for its predecessor, copies, then overwrites `to_poison`
// with 0xff.
void launch_early_reader(cudaStream_t stream, const CopyList& copies, const CopyList& to_poison);
// Starts early; waits for its predecessor only if asked to. Without: the fault that the pairs must see.
void launch_copy(cudaStream_t stream, const CopyList& copies, bool wait);
// Holds `units` multiprocessors: one block fills one.
void launch_busy(cudaStream_t stream, uint64_t ns, int units);
void launch_fault(cudaStream_t stream);

}  // namespace fmhc_gpu
