// The cluster kernels as addresses with their launch sizes, one file a hidden size.
#pragma once

#include <cstdint>

namespace fmhc::cuda::cluster {

enum class Form : uint8_t { kPre, kSeam, kHead, kProject };
enum class Norm : uint8_t { kNone, kEngine, kUnfused };  // as fmhc_norm

struct Kernel {
  const void* function;
  int32_t threads, shared_bytes;
};

Kernel kernel_4096(Form form, Norm norm);
Kernel kernel_5120(Form form, Norm norm);
Kernel kernel_7168(Form form, Norm norm);
const void* pack_kernel();

}  // namespace fmhc::cuda::cluster
