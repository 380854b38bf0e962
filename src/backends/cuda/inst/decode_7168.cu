#include "backends/cuda/decode/table.cuh"

namespace fmhc::cuda::decode {

Kernel kernel_7168(int config, bool seam, bool norm) {
  return find_entry<7168, 4, 7, 0>(config, seam, norm);
}

}  // namespace fmhc::cuda::decode
