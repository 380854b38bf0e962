// Instantiates every form for one hidden size.
#pragma once

#include "backends/cuda/cluster/kernel.cuh"
#include "backends/cuda/cluster/kernels.h"

namespace fmhc::cuda::cluster {

template <int kHidden, Form kForm, Norm kNorm>
Kernel entry_of() {
  using G = Tile<kHidden, kForm, kNorm>;
  return {reinterpret_cast<const void*>(&cluster_kernel<G>), G::kThreads, G::kBytes};
}

template <int kHidden, Form kForm>
Kernel entry_of_norm(Norm norm) {
  switch (norm) {
    case Norm::kEngine:
      return entry_of<kHidden, kForm, Norm::kEngine>();
    case Norm::kUnfused:
      return entry_of<kHidden, kForm, Norm::kUnfused>();
    default:
      return entry_of<kHidden, kForm, Norm::kNone>();
  }
}

template <int kHidden>
Kernel find_entry(Form form, Norm norm) {
  switch (form) {
    case Form::kPre:
      return entry_of_norm<kHidden, Form::kPre>(norm);
    case Form::kSeam:
      return entry_of_norm<kHidden, Form::kSeam>(norm);
    case Form::kHead:
      return entry_of_norm<kHidden, Form::kHead>(norm);
    default:
      return entry_of<kHidden, Form::kProject, Norm::kNone>();
  }
}

}  // namespace fmhc::cuda::cluster
