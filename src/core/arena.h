// Carves one block of caller memory into aligned pieces. Without a base it only counts, so that sizing and
// carving are the same code and cannot disagree.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fmhc {

class Arena {
 public:
  static constexpr size_t kAlignment = 256;

  Arena() = default;
  explicit Arena(void* base) : base_(static_cast<unsigned char*>(base)) {}

  // `count` elements of T, aligned to kAlignment; nullptr while counting.
  template <typename T>
  T* take(int64_t count) {
    const size_t begin = used_;
    used_ += (static_cast<size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + begin);
  }

  size_t used() const { return used_; }

 private:
  unsigned char* base_ = nullptr;
  size_t used_ = 0;
};

}  // namespace fmhc
