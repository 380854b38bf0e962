// The CUDA runtime as the backend uses it: device guard, typed errors, one launch helper. No allocation, no
// synchronisation, nothing that is illegal inside stream capture.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/status.h"
#include "kernels/entry.h"

namespace fmhc::cuda {

// The fmhc_code of an error, and whether the context is lost with it.
int32_t code_of(cudaError_t error);

// Fills the diag with what failed and why, clears the error of this thread unless it is sticky, returns its
// code.
int32_t fail_cuda(fmhc_diag* diag, cudaError_t error, const char* what);

// Makes the plan's device current and restores what was current.
class DeviceGuard {
 public:
  DeviceGuard() = default;
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard();

  int32_t enter(int device, fmhc_diag* diag);

 private:
  int previous_ = -1;
};

// The same before anything is loaded: says why if the machine has no such device or a different one.
int32_t enter_target(DeviceGuard& guard, const Target& target, fmhc_diag* diag);

struct Grid {
  unsigned blocks_x, blocks_y;
  unsigned threads;
  size_t shared_bytes;
  bool cooperative = false;  // all CTAs start together or none does
  unsigned cluster = 0;      // CTAs of a cluster along x, where the kernel does not say itself
};

// One run: enter() once, then launches on the caller's stream. A failed launch is reported, never repeated.
class Session {
 public:
  int32_t enter(const Launch& launch, fmhc_diag* diag) {
    return enter(launch.problem, launch.target, launch.args.stream, launch.problem.pdl != 0, diag);
  }
  // `overlap`: launches may begin before what is ahead of them in the stream is complete.
  int32_t enter(const Problem& problem, const Target& target, void* stream, bool overlap, fmhc_diag* diag);

  // `params` are the kernel's arguments.
  template <typename... Params>
  int32_t launch(const void* kernel, const Grid& grid, const Params&... params) {
    void* arguments[] = {const_cast<Params*>(&params)..., nullptr};
    return launch_raw(kernel, grid, arguments);
  }

 private:
  int32_t launch_raw(const void* kernel, const Grid& grid, void** arguments);

  DeviceGuard guard_;
  cudaStream_t stream_ = nullptr;
  fmhc_diag* diag_ = nullptr;
  const char* operation_ = nullptr;
  bool overlap_ = false;
};

// Loads a kernel on the current device and lets it use `shared_bytes` of dynamic shared memory.
int32_t load_kernel(const void* kernel, size_t shared_bytes, fmhc_diag* diag);

}  // namespace fmhc::cuda
