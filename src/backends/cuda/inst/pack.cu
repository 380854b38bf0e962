#include "backends/cuda/kernels.h"
#include "backends/cuda/portable/pack.cuh"

namespace fmhc::cuda {

PackKernels pack_kernels() {
  return {reinterpret_cast<const void*>(&pack_kernel), reinterpret_cast<const void*>(&fence_kernel)};
}

}  // namespace fmhc::cuda
