#include "backends/cuda/kernels.h"
#include "backends/cuda/portable/finish.cuh"
#include "backends/cuda/portable/post.cuh"

namespace fmhc::cuda {

VectorKernels vector_kernels_bf16() {
  return {reinterpret_cast<const void*>(&post_kernel<DeviceBf16>),
          {reinterpret_cast<const void*>(&finish_kernel<DeviceBf16, 1>),
           reinterpret_cast<const void*>(&finish_kernel<DeviceBf16, 2>),
           reinterpret_cast<const void*>(&finish_kernel<DeviceBf16, 4>)}};
}

}  // namespace fmhc::cuda
