#include "backends/cuda/kernels.h"
#include "backends/cuda/portable/finish.cuh"
#include "backends/cuda/portable/post.cuh"

namespace fmhc::cuda {

VectorKernels vector_kernels_fp16() {
  return {reinterpret_cast<const void*>(&post_kernel<DeviceFp16>),
          {reinterpret_cast<const void*>(&finish_kernel<DeviceFp16, 1>),
           reinterpret_cast<const void*>(&finish_kernel<DeviceFp16, 2>),
           reinterpret_cast<const void*>(&finish_kernel<DeviceFp16, 4>)}};
}

}  // namespace fmhc::cuda
