// Where a test runs: a CUDA device, or the host in its place so that all test logic can be run without one.
// Owns memory and a stream; a failing CUDA call ends the process with a message, for every test runs in its
// own.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "flashmhc/flashmhc.h"

namespace fmhc_gpu {

// Where die() leaves a line as well; the text must outlive the process.
void set_fatal_file(const char* path);
[[noreturn]] void die(const char* what, const char* why);
void cuda_check(cudaError_t code, const char* what);
#define FMHC_CUDA(call) ::fmhc_gpu::cuda_check((call), #call)

// What the card says about itself, for the records.
struct CardInfo {
  std::string name, driver, runtime, clocks;
  int units = 0;
  size_t l2_bytes = 0, memory_bytes = 0;
};

class Device {
 public:
  explicit Device(int32_t kind);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  bool is_cuda() const { return kind_ == FMHC_CUDA; }
  int32_t kind() const { return kind_; }
  const fmhc_target& target() const { return target_; }
  cudaStream_t stream() const { return stream_; }
  void* stream_handle() const { return stream_; }

  void* allocate(size_t bytes);  // 256-byte aligned; ends the process when there is no memory
  void release(void* data);
  void copy_in(void* to, const void* from, size_t bytes);
  void copy_out(void* to, const void* from, size_t bytes);  // waits
  void copy_within(void* to, const void* from, size_t bytes);
  void fill_bytes(void* data, int value, size_t bytes);
  void wait();  // for the stream; ends the process on a device error
  CardInfo card() const;

 private:
  int32_t kind_;
  fmhc_target target_{};
  cudaStream_t stream_ = nullptr;
};

}  // namespace fmhc_gpu
