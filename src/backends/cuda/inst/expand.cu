#include "backends/cuda/generic/elementwise.cuh"
#include "backends/cuda/kernels.h"

namespace fmhc::cuda {

ExpandKernels expand_kernels() {
  return {reinterpret_cast<const void*>(&expand_kernel<uint16_t>),
          reinterpret_cast<const void*>(&expand_kernel<uint32_t>),
          reinterpret_cast<const void*>(&expand_kernel<uint4>)};
}

}  // namespace fmhc::cuda
