// Dtypes of the safetensors format, the description of one stored tensor, and a tensor held in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fmhc::io {

enum class Dtype : uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

const char* dtype_name(Dtype dtype);  // as the format spells it: "BF16"
uint32_t dtype_bits(Dtype dtype);
std::optional<Dtype> dtype_from_name(std::string_view name);  // exact spelling only

using Shape = std::vector<int64_t>;
std::string shape_text(const Shape& shape);  // "[1, 13, 4, 256]"

// Size in bits; nothing if that or the element count overflows 63 bits. Elements of less than a byte need
// not fill whole bytes, and a caller that wants bytes has to check it.
std::optional<uint64_t> tensor_bits(Dtype dtype, const Shape& shape);

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  uint64_t begin = 0, end = 0;  // bytes from the start of the data section

  uint64_t bytes() const { return end - begin; }
};

// Bytes aligned for vector loads, not initialised.
class Buffer {
 public:
  static constexpr size_t kAlign = 64;

  Buffer() = default;
  // Null data when the memory is not there (size() is 0 then).
  explicit Buffer(size_t bytes)
      : data_(static_cast<std::byte*>(::operator new (bytes + 1, std::align_val_t{kAlign}, std::nothrow))),
        size_(data_ ? bytes : 0) {}

  bool allocated() const { return data_ != nullptr; }
  size_t size() const { return size_; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::span<std::byte> bytes() { return {data(), size_}; }
  std::span<const std::byte> bytes() const { return {data(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* pointer) const { ::operator delete (pointer, std::align_val_t{kAlign}); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

struct HostTensor {
  Dtype dtype = Dtype::kF32;
  Shape shape;
  Buffer buffer;  // row-major, packed

  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(buffer.data());
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(buffer.data());
  }
};

}  // namespace fmhc::io
