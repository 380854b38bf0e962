// Checked integer arithmetic. Sizes of tensors come from callers: every product of theirs goes through here.
#pragma once

#include <cstdint>
#include <limits>

namespace fmhc {

// Each returns false on overflow and leaves *out unspecified.
[[nodiscard]] inline bool checked_mul(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}
[[nodiscard]] inline bool checked_add(int64_t a, int64_t b, int64_t* out) {
  return !__builtin_add_overflow(a, b, out);
}

// a >= 0, b > 0; does not overflow for a near the largest int64.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

constexpr int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
constexpr int64_t max64(int64_t a, int64_t b) {
  return a < b ? b : a;
}

}  // namespace fmhc
