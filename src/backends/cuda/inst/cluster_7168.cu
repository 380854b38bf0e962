#include "backends/cuda/cluster/table.cuh"

namespace fmhc::cuda::cluster {

Kernel kernel_7168(Form form, Norm norm) {
  return find_entry<7168>(form, norm);
}

}  // namespace fmhc::cuda::cluster
