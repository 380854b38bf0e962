#include "backends/cuda/cluster/table.cuh"

namespace fmhc::cuda::cluster {

Kernel kernel_5120(bool seam, bool norm) {
  return find_entry<5120>(seam, norm);
}

}  // namespace fmhc::cuda::cluster
