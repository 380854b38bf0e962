#include "io/tensor.h"

#include <array>

namespace fmhc::io {
namespace {

struct DtypeRow {
  const char* name;
  uint32_t bits;
};

// In the order of Dtype.
constexpr std::array<DtypeRow, 22> kDtypes = {{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
}};
static_assert(kDtypes.size() == static_cast<size_t>(Dtype::kU64) + 1);

}  // namespace

const char* dtype_name(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].name;
}

uint32_t dtype_bits(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].bits;
}

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kDtypes.size(); ++i) {
    if (name == kDtypes[i].name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<uint64_t> tensor_bits(Dtype dtype, const Shape& shape) {
  // A zero extent must not hide an overflow of the others, so it is left out of the product.
  uint64_t bits = dtype_bits(dtype);
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bits, static_cast<uint64_t>(extent), &bits) || bits >> 63) {
      return std::nullopt;
    }
  }
  return empty ? 0 : bits;
}

}  // namespace fmhc::io
