#include "backends/cuda/cluster/kernel.cuh"
#include "backends/cuda/cluster/kernels.h"

namespace fmhc::cuda::cluster {
namespace {

template <bool kSeam, bool kNorm>
Kernel entry() {
  using G = Tile<5120, kSeam, kNorm>;
  return {reinterpret_cast<const void*>(&cluster_kernel<G>), G::kThreads, G::kBytes};
}

}  // namespace

Kernel kernel_5120(bool seam, bool norm) {
  if (seam) return norm ? entry<true, true>() : entry<true, false>();
  return norm ? entry<false, true>() : entry<false, false>();
}

}  // namespace fmhc::cuda::cluster
