#include "cli/tensor_stats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace fmhc::cli {
namespace {

double from_half(uint16_t bits) {
  const double sign = bits >> 15 ? -1 : 1;
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f) return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double value_at(io::Dtype dtype, const std::byte* data, size_t index) {
  const auto load = [&]<class T>(T value) {
    std::memcpy(&value, data + index * sizeof(T), sizeof(T));
    return value;
  };
  if (dtype == io::Dtype::kF64) return load(double{});
  if (dtype == io::Dtype::kF32) return static_cast<double>(load(float{}));
  const uint16_t bits = load(uint16_t{});
  if (dtype == io::Dtype::kF16) return from_half(bits);
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

}  // namespace

bool has_stats(io::Dtype dtype) {
  return dtype == io::Dtype::kF64 || dtype == io::Dtype::kF32 || dtype == io::Dtype::kF16 ||
         dtype == io::Dtype::kBF16;
}

io::Result<TensorStats> tensor_stats(const io::SafetensorsReader& file, const io::TensorInfo& tensor) {
  constexpr uint64_t kPiece = uint64_t{4} << 20;
  const size_t width = io::dtype_bits(tensor.dtype) / 8;
  io::Buffer piece(std::min(kPiece, tensor.bytes()));
  if (!piece.allocated()) {
    return io::Fault{io::Errc::kOutOfMemory, file.path(), tensor.name, std::to_string(kPiece) + " bytes",
                     "memory for a piece"};
  }
  TensorStats stats;
  stats.min = HUGE_VAL;
  stats.max = -HUGE_VAL;
  double sum = 0, squares = 0;
  for (uint64_t offset = 0; offset < tensor.bytes(); offset += kPiece) {
    const auto part = piece.bytes().first(std::min(kPiece, tensor.bytes() - offset));
    if (io::Status read = file.read_part(tensor, offset, part); !read) return read.fault();
    for (size_t index = 0; index < part.size() / width; ++index, ++stats.count) {
      const double value = value_at(tensor.dtype, part.data(), index);
      if (!std::isfinite(value)) {
        ++stats.non_finite;
        continue;
      }
      stats.min = std::min(stats.min, value);
      stats.max = std::max(stats.max, value);
      sum += value;
      squares += value * value;
    }
  }
  if (stats.finite() == 0) {
    stats.min = stats.max = 0;
    return stats;
  }
  const auto finite = static_cast<double>(stats.finite());
  stats.mean = sum / finite;
  stats.rms = std::sqrt(squares / finite);
  return stats;
}

}  // namespace fmhc::cli
