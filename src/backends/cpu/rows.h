// Rows of untyped tensors: addresses from strides in elements, coefficients gathered from any strides, and
// the loop over tokens of operators without work memory.
#pragma once

#include "backends/cpu/stages.h"
#include "backends/cpu/workers.h"
#include "core/dtype.h"

namespace fmhc::cpu {

// [T, n, H] or [T, H] with a contiguous last axis; strides in elements.
template <typename Byte>
struct RowsOf {
  Byte* data;
  int64_t element, token_stride, stream_stride;

  // The stride of an axis of length 1 means nothing and may be anything.
  template <typename Tensor>
  explicit RowsOf(const Tensor& tensor)
      : data(static_cast<Byte*>(tensor.data)),
        element(dtype_bytes(tensor.dtype)),
        token_stride(tensor.shape[0] > 1 ? tensor.stride[0] : 0),
        stream_stride(tensor.rank == 3 && tensor.shape[1] > 1 ? tensor.stride[1] : 0) {}

  Byte* at(int64_t token, int64_t stream = 0) const {
    return data + (token * token_stride + stream * stream_stride) * element;
  }
};
using Rows = RowsOf<const unsigned char>;
using OutRows = RowsOf<unsigned char>;

// Row `token` of a small fp32 tensor, flattened in order: element i of [T, n], or i = row * n + column of
// [T, n, n].
template <typename Tensor>
int64_t small_offset(const Tensor& tensor, int64_t token, int32_t n, int32_t i) {
  const int64_t inner =
      tensor.rank == 3 ? (i / n) * tensor.stride[1] + (i % n) * tensor.stride[2] : i * tensor.stride[1];
  return token * tensor.stride[0] + inner;
}

inline void gather_small(const fmhc_in& tensor, int64_t token, int32_t n, float* to) {
  const int32_t count = tensor.rank == 3 ? n * n : n;
  const auto* from = static_cast<const float*>(tensor.data);
  for (int32_t i = 0; i < count; ++i) to[i] = from[small_offset(tensor, token, n, i)];
}

// `from` [elements, kBlockTokens], at the token's column.
inline void scatter_small(const float* from, int64_t token, int32_t n, const fmhc_out& tensor) {
  if (tensor.data == nullptr) return;
  const int32_t count = tensor.rank == 3 ? n * n : n;
  auto* to = static_cast<float*>(tensor.data);
  for (int32_t i = 0; i < count; ++i) to[small_offset(tensor, token, n, i)] = from[i * kBlockTokens];
}

// body(token) for every token, a run of tokens a block.
template <typename Body>
int32_t for_tokens(const Launch& launch, const Body& body) {
  constexpr int64_t kRun = 8;
  const int64_t blocks = ceil_div(launch.tokens, kRun);
  const fmhc_executor* executor = launch.args.executor;
  run_blocks(executor, worker_count(executor, blocks, blocks), blocks, [&](int64_t, int64_t block) {
    const int64_t end = min64((block + 1) * kRun, launch.tokens);
    for (int64_t t = block * kRun; t < end; ++t) body(t);
  });
  return FMHC_OK;
}

}  // namespace fmhc::cpu
