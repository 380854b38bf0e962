#include "backends/cuda/cluster/table.cuh"

namespace fmhc::cuda::cluster {

Kernel kernel_7168(bool seam, bool norm) {
  return find_entry<7168>(seam, norm);
}

}  // namespace fmhc::cuda::cluster
