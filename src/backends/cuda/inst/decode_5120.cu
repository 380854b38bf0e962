#include "backends/cuda/decode/table.cuh"

namespace fmhc::cuda::decode {

Kernel kernel_5120(int config, bool seam, bool norm) {
  return find_entry<5120, 3, 5, 0>(config, seam, norm);
}

}  // namespace fmhc::cuda::decode
