#include "backends/cuda/decode/table.cuh"

namespace fmhc::cuda::decode {

Kernel kernel_4096(int config, bool seam, bool norm) {
  return find_entry<4096, 2, 4, 8>(config, seam, norm);
}

}  // namespace fmhc::cuda::decode
