// Instantiates every form for one hidden size.
#pragma once

#include "backends/cuda/cluster/kernel.cuh"
#include "backends/cuda/cluster/kernels.h"

namespace fmhc::cuda::cluster {

template <int kHidden, bool kSeam, bool kNorm>
Kernel entry_of() {
  using G = Tile<kHidden, kSeam, kNorm>;
  return {reinterpret_cast<const void*>(&cluster_kernel<G>), G::kThreads, G::kBytes};
}

template <int kHidden>
Kernel find_entry(bool seam, bool norm) {
  if (seam) return norm ? entry_of<kHidden, true, true>() : entry_of<kHidden, true, false>();
  return norm ? entry_of<kHidden, false, true>() : entry_of<kHidden, false, false>();
}

}  // namespace fmhc::cuda::cluster
