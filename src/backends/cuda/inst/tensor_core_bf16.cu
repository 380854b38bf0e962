#include "backends/cuda/kernels.h"
#include "backends/cuda/portable/project.cuh"
#include "backends/cuda/portable/seam.cuh"

namespace fmhc::cuda {
namespace {

template <int kPieces>
TensorCoreKernels kernels_with() {
  return {reinterpret_cast<const void*>(&project_mma_kernel<DeviceBf16, kPieces, 3, true>),
          reinterpret_cast<const void*>(&project_mma_kernel<DeviceBf16, kPieces, 1, true>),
          reinterpret_cast<const void*>(&seam_mma_kernel<kPieces, true>),
          reinterpret_cast<const void*>(&project_mma_kernel<DeviceBf16, kPieces, 3, false>),
          reinterpret_cast<const void*>(&project_mma_kernel<DeviceBf16, kPieces, 1, false>),
          reinterpret_cast<const void*>(&seam_mma_kernel<kPieces, false>)};
}

}  // namespace

TensorCoreKernels tensor_core_kernels_bf16(int pieces) {
  return pieces == 3 ? kernels_with<3>() : kernels_with<2>();
}

}  // namespace fmhc::cuda
