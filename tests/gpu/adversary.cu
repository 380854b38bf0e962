#include "adversary.h"

#include "device.h"

namespace fmhc_gpu {
namespace {

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ void spin(unsigned long long ns) {
  const unsigned long long begin = nanoseconds();
  while (nanoseconds() - begin < ns) {
  }
}

__device__ void release_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ void wait_for_predecessor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ void copy_all(const CopyList& list, bool poison) {
  const int64_t begin = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int item = 0; item < list.count; ++item) {
    // Tensors of the arena begin at multiples of 256 bytes.
    auto* to = static_cast<uint32_t*>(list.to[item]);
    const auto* from = static_cast<const uint32_t*>(list.from[item]);
    const int64_t words = list.bytes[item] / 4;
    for (int64_t i = begin; i < words; i += step) to[i] = poison ? 0xffffffffu : from[i];
    if (begin == 0 && list.bytes[item] % 4 != 0) {
      auto* last = reinterpret_cast<uint16_t*>(to + words);
      *last = poison ? 0xffff : *reinterpret_cast<const uint16_t*>(from + words);
    }
  }
}

__global__ void late_writer_kernel(CopyList copies, unsigned long long sleep_ns) {
  release_dependents();
  spin(sleep_ns);
  copy_all(copies, false);
}

__global__ void early_reader_kernel(CopyList copies, CopyList to_poison) {
  wait_for_predecessor();
  copy_all(copies, false);
  copy_all(to_poison, true);
}

__global__ void copy_kernel(CopyList copies, bool wait) {
  if (wait) wait_for_predecessor();
  copy_all(copies, false);
}

__global__ void busy_kernel(unsigned long long ns) {
  spin(ns);
}

__global__ void fault_kernel(volatile int* nowhere) {
  *nowhere = 1;
}

class EarlyLaunch {
 public:
  explicit EarlyLaunch(cudaStream_t stream) {
    attribute_.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute_.val.programmaticStreamSerializationAllowed = 1;
    config_.gridDim = dim3(16);
    config_.blockDim = dim3(512);
    config_.stream = stream;
    config_.attrs = &attribute_;
    config_.numAttrs = 1;
  }
  const cudaLaunchConfig_t* config() const { return &config_; }

 private:
  cudaLaunchAttribute attribute_{};
  cudaLaunchConfig_t config_{};
};

}  // namespace

void launch_late_writer(cudaStream_t stream, const CopyList& copies, uint64_t sleep_ns) {
  late_writer_kernel<<<16, 512, 0, stream>>>(copies, sleep_ns);
  FMHC_CUDA(cudaGetLastError());
}

void launch_early_reader(cudaStream_t stream, const CopyList& copies, const CopyList& to_poison) {
  FMHC_CUDA(cudaLaunchKernelEx(EarlyLaunch(stream).config(), early_reader_kernel, copies, to_poison));
}

void launch_copy(cudaStream_t stream, const CopyList& copies, bool wait) {
  FMHC_CUDA(cudaLaunchKernelEx(EarlyLaunch(stream).config(), copy_kernel, copies, wait));
}

void launch_busy(cudaStream_t stream, uint64_t ns, int units) {
  constexpr int kSharedBytes =
      200 * 1024;  // of 227 KB: no second block of anyone with more than a little fits beside
  FMHC_CUDA(cudaFuncSetAttribute(busy_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  busy_kernel<<<static_cast<unsigned>(units), 1024, kSharedBytes, stream>>>(ns);
  FMHC_CUDA(cudaGetLastError());
}

void launch_fault(cudaStream_t stream) {
  fault_kernel<<<1, 1, 0, stream>>>(reinterpret_cast<volatile int*>(16));
}

}  // namespace fmhc_gpu
