#include "backends/cuda/cluster/table.cuh"

namespace fmhc::cuda::cluster {

Kernel kernel_4096(Form form, Norm norm) {
  return find_entry<4096>(form, norm);
}

}  // namespace fmhc::cuda::cluster
