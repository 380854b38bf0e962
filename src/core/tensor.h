// Typed views of the untyped tensors of the C ABI. Only valid after ops/check_args has passed; offsets are
// 64-bit.
#pragma once

#include <cstdint>

#include "flashmhc/flashmhc.h"

namespace fmhc {

template <typename T, int kRank>
struct View {
  T* data = nullptr;
  int64_t stride[kRank] = {};

  template <typename... Index>
  T* at(Index... index) const {
    static_assert(sizeof...(Index) <= kRank);
    const int64_t indices[] = {static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (int axis = 0; axis < static_cast<int>(sizeof...(Index)); ++axis)
      offset += indices[axis] * stride[axis];
    return data + offset;
  }

  explicit operator bool() const { return data != nullptr; }
};

template <typename T, int kRank>
View<const T, kRank> view(const fmhc_in& tensor) {
  View<const T, kRank> result{static_cast<const T*>(tensor.data), {}};
  for (int axis = 0; axis < kRank; ++axis) result.stride[axis] = tensor.stride[axis];
  return result;
}

template <typename T, int kRank>
View<T, kRank> view(const fmhc_out& tensor) {
  View<T, kRank> result{static_cast<T*>(tensor.data), {}};
  for (int axis = 0; axis < kRank; ++axis) result.stride[axis] = tensor.stride[axis];
  return result;
}

}  // namespace fmhc
