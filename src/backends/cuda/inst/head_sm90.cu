#include "backends/cuda/kernels.h"
#include "backends/cuda/sm90/head.cuh"

namespace fmhc::cuda {

const void* head_cluster_kernel_of(int cluster) {
  switch (cluster) {
    case 1:
      return reinterpret_cast<const void*>(&head_cluster_kernel<1>);
    case 2:
      return reinterpret_cast<const void*>(&head_cluster_kernel<2>);
    case 4:
      return reinterpret_cast<const void*>(&head_cluster_kernel<4>);
    default:
      return reinterpret_cast<const void*>(&head_cluster_kernel<8>);
  }
}

}  // namespace fmhc::cuda
