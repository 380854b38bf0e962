#include "backends/cuda/kernels.h"
#include "backends/cuda/portable/finish.cuh"
#include "backends/cuda/portable/post.cuh"

namespace fmhc::cuda {

VectorKernels vector_kernels_fp32() {
  return {reinterpret_cast<const void*>(&post_kernel<float>),
          {reinterpret_cast<const void*>(&finish_kernel<float, 1>),
           reinterpret_cast<const void*>(&finish_kernel<float, 2>),
           reinterpret_cast<const void*>(&finish_kernel<float, 4>)}};
}

}  // namespace fmhc::cuda
