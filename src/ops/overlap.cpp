#include "ops/overlap.h"

#include <algorithm>
#include <cstdint>

#include "core/dtype.h"
#include "core/math.h"

namespace fmhc {
namespace {

int64_t element_bytes(const fmhc_in& tensor) {
  return std::max<int64_t>(dtype_bytes(tensor.dtype), 1);
}

bool is_empty(const fmhc_in& tensor) {
  return tensor.data == nullptr ||
         std::any_of(tensor.shape, tensor.shape + tensor.rank, [](int64_t n) { return n == 0; });
}

// The axes that move the address, largest step first.
struct Axes {
  int count = 0;
  int64_t step[4];  // bytes
  int64_t extent[4];

  void insert(int64_t new_step, int64_t new_extent) {
    int place = count++;
    for (; place > 0 && step[place - 1] < new_step; --place) {
      step[place] = step[place - 1];
      extent[place] = extent[place - 1];
    }
    step[place] = new_step;
    extent[place] = new_extent;
  }
};

Axes moving_axes(const fmhc_in& tensor) {
  Axes axes;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.shape[axis] > 1) axes.insert(tensor.stride[axis] * element_bytes(tensor), tensor.shape[axis]);
  }
  return axes;
}

int64_t span_of_inner(const Axes& axes, int first, int64_t element) {
  int64_t bytes = element;
  for (int axis = first; axis < axes.count; ++axis) {
    bytes += axes.step[axis] * (axes.extent[axis] - 1);
  }
  return bytes;
}

}  // namespace

bool byte_span(const fmhc_in& tensor, int64_t* bytes) {
  *bytes = element_bytes(tensor);
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.shape[axis] <= 1) continue;  // its stride is never used
    int64_t step = 0;
    if (tensor.stride[axis] < 0 || !checked_mul(tensor.stride[axis], element_bytes(tensor), &step) ||
        !checked_mul(step, tensor.shape[axis] - 1, &step) || !checked_add(*bytes, step, bytes)) {
      return false;
    }
  }
  return true;
}

bool overlaps(const fmhc_in& a, const fmhc_in& b) {
  if (is_empty(a) || is_empty(b)) return false;
  int64_t span_a = 0;
  int64_t span_b = 0;
  if (!byte_span(a, &span_a) || !byte_span(b, &span_b)) return true;
  const auto begin_a = reinterpret_cast<uintptr_t>(a.data);
  const auto begin_b = reinterpret_cast<uintptr_t>(b.data);
  if (begin_a + static_cast<uintptr_t>(span_a) <= begin_b ||
      begin_b + static_cast<uintptr_t>(span_b) <= begin_a) {
    return false;
  }
  // Column slices of one buffer: rows of equal pitch that never reach into each other's columns.
  const Axes axes_a = moving_axes(a);
  const Axes axes_b = moving_axes(b);
  if (axes_a.count == 0 || axes_b.count == 0) return true;
  const int64_t pitch = axes_a.step[0];
  if (pitch == 0 || pitch != axes_b.step[0]) return true;
  const int64_t row_a = span_of_inner(axes_a, 1, element_bytes(a));
  const int64_t row_b = span_of_inner(axes_b, 1, element_bytes(b));
  const auto wide_pitch = static_cast<uintptr_t>(pitch);
  const auto shift =
      static_cast<int64_t>(begin_b >= begin_a ? (begin_b - begin_a) % wide_pitch
                                              : (wide_pitch - (begin_a - begin_b) % wide_pitch) % wide_pitch);
  return !(row_a <= shift && shift + row_b <= pitch);
}

bool overlaps_itself(const fmhc_in& tensor) {
  if (is_empty(tensor)) return false;
  const Axes axes = moving_axes(tensor);
  for (int axis = 0; axis < axes.count; ++axis) {
    if (axes.step[axis] < span_of_inner(axes, axis + 1, element_bytes(tensor))) return true;
  }
  return false;
}

bool same_tensor(const fmhc_in& a, const fmhc_in& b) {
  return a.data == b.data && a.rank == b.rank && a.dtype == b.dtype &&
         std::equal(a.shape, a.shape + a.rank, b.shape) && std::equal(a.stride, a.stride + a.rank, b.stride);
}

}  // namespace fmhc
