#include "backends/cuda/generic/elementwise.cuh"
#include "backends/cuda/generic/finish.cuh"
#include "backends/cuda/generic/project.cuh"
#include "backends/cuda/kernels.h"

namespace fmhc::cuda {

GenericKernels generic_kernels_bf16() {
  return {reinterpret_cast<const void*>(&post_generic_kernel<DeviceBf16>),
          reinterpret_cast<const void*>(&project_generic_kernel<DeviceBf16>),
          reinterpret_cast<const void*>(&finish_generic_kernel<DeviceBf16>)};
}

}  // namespace fmhc::cuda
