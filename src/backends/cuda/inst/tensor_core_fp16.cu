#include "backends/cuda/kernels.h"
#include "backends/cuda/portable/project.cuh"

namespace fmhc::cuda {
namespace {

template <int kPieces>
TensorCoreKernels kernels_with() {
  return {reinterpret_cast<const void*>(&project_mma_kernel<DeviceFp16, kPieces, 3, true>),
          reinterpret_cast<const void*>(&project_mma_kernel<DeviceFp16, kPieces, 1, true>),
          nullptr,
          reinterpret_cast<const void*>(&project_mma_kernel<DeviceFp16, kPieces, 3, false>),
          reinterpret_cast<const void*>(&project_mma_kernel<DeviceFp16, kPieces, 1, false>),
          nullptr};
}

}  // namespace

TensorCoreKernels tensor_core_kernels_fp16(int pieces) {
  return pieces == 3 ? kernels_with<3>() : kernels_with<2>();
}

}  // namespace fmhc::cuda
