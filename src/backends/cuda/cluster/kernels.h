// The cluster kernels as addresses with their launch sizes, one file a hidden size.
#pragma once

#include <cstdint>

namespace fmhc::cuda::cluster {

struct Kernel {
  const void* function;
  int32_t threads, shared_bytes;
};

Kernel kernel_4096(bool seam, bool norm);
Kernel kernel_5120(bool seam, bool norm);
Kernel kernel_7168(bool seam, bool norm);
const void* pack_kernel();

}  // namespace fmhc::cuda::cluster
