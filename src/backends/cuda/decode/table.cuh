// Instantiates every configuration for one hidden size.
#pragma once

#include "backends/cuda/decode/big.cuh"
#include "backends/cuda/decode/kernels.h"
#include "backends/cuda/decode/small.cuh"

namespace fmhc::cuda::decode {

template <class G, bool kTensorCores>
Kernel entry_of() {
  if constexpr (kTensorCores) {
    using L = BigLayout<G>;
    return {reinterpret_cast<const void*>(&big_kernel<G>), G::kSlices, L::kThreads, L::kBytes};
  } else {
    using L = SmallLayout<G>;
    return {reinterpret_cast<const void*>(&small_kernel<G>), G::kSlices, L::kThreads, L::kBytes};
  }
}

// kUnits1, 2, 4: units a CTA owns with one, two and four groups; 0: not built.
template <int kHidden, int kUnits1, int kUnits2, int kUnits4, int kConfig, bool kSeam, bool kNorm>
Kernel entry_of_config() {
  constexpr Config config = kConfigs[kConfig];
  constexpr int kUnits = config.groups == 1 ? kUnits1 : config.groups == 2 ? kUnits2 : kUnits4;
  if constexpr (kUnits == 0) {
    return {};
  } else {
    return entry_of<Geometry<kHidden, kUnits, config.tokens, kSeam, kNorm>, config.tensor_cores>();
  }
}

template <int kHidden, int kUnits1, int kUnits2, int kUnits4, int kConfig = 0>
Kernel find_entry(int config, bool seam, bool norm) {
  if constexpr (kConfig == kConfigCount) {
    return {};
  } else {
    if (config != kConfig)
      return find_entry<kHidden, kUnits1, kUnits2, kUnits4, kConfig + 1>(config, seam, norm);
    const Kernel entries[2][2] = {
        {entry_of_config<kHidden, kUnits1, kUnits2, kUnits4, kConfig, false, false>(),
         entry_of_config<kHidden, kUnits1, kUnits2, kUnits4, kConfig, false, true>()},
        {entry_of_config<kHidden, kUnits1, kUnits2, kUnits4, kConfig, true, false>(),
         entry_of_config<kHidden, kUnits1, kUnits2, kUnits4, kConfig, true, true>()}};
    return entries[seam][norm];
  }
}

}  // namespace fmhc::cuda::decode
