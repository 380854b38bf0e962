#include "backends/cuda/cluster/table.cuh"

namespace fmhc::cuda::cluster {

Kernel kernel_5120(Form form, Norm norm) {
  return find_entry<5120>(form, norm);
}

}  // namespace fmhc::cuda::cluster
