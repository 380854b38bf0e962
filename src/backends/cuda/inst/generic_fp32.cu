#include "backends/cuda/generic/elementwise.cuh"
#include "backends/cuda/generic/finish.cuh"
#include "backends/cuda/generic/project.cuh"
#include "backends/cuda/kernels.h"

namespace fmhc::cuda {

GenericKernels generic_kernels_fp32() {
  return {reinterpret_cast<const void*>(&post_generic_kernel<float>),
          reinterpret_cast<const void*>(&project_generic_kernel<float>),
          reinterpret_cast<const void*>(&finish_generic_kernel<float>)};
}

}  // namespace fmhc::cuda
