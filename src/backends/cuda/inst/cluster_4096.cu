#include "backends/cuda/cluster/table.cuh"

namespace fmhc::cuda::cluster {

Kernel kernel_4096(bool seam, bool norm) {
  return find_entry<4096>(seam, norm);
}

}  // namespace fmhc::cuda::cluster
