// Calls a generic lambda with the storage type of the problem's residual.
#pragma once

#include "core/dtype.h"
#include "kernels/entry.h"

namespace fmhc::ref {

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
