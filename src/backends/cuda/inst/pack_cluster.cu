#include "backends/cuda/cluster/kernels.h"
#include "backends/cuda/cluster/pack.cuh"

namespace fmhc::cuda::cluster {

const void* pack_kernel() {
  return reinterpret_cast<const void*>(&pack_cluster_kernel);
}

}  // namespace fmhc::cuda::cluster
