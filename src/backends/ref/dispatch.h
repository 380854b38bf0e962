// The storage types of a problem: a generic lambda is called with that of the residual, and each has one for
// its coefficients and partials.
#pragma once

#include <type_traits>

#include "core/dtype.h"
#include "kernels/entry.h"

namespace fmhc::ref {

// An fp64 residual rounds nowhere, so its coefficients and partials are fp64 too.
template <typename T>
using StoredCoefficient = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
struct Tag {
  using type = T;
};

template <typename Body>
int32_t with_storage(int32_t dtype, Body&& body) {
  switch (dtype) {
    case FMHC_BF16:
      return body(Tag<Bf16>{});
    case FMHC_FP16:
      return body(Tag<Fp16>{});
    case FMHC_FP32:
      return body(Tag<float>{});
    case FMHC_FP64:
      return body(Tag<double>{});
    default:
      return FMHC_INTERNAL;
  }
}

}  // namespace fmhc::ref
