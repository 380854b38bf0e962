#include "cli/tensor_stats.h"

#include <algorithm>
#include <cmath>

#include "check/storage.h"
#include "cli/trunk_ops.h"

namespace fmhc::cli {
io::Result<TensorStats> tensor_stats(const io::SafetensorsReader& file, const io::TensorInfo& tensor) {
  constexpr uint64_t kPiece = uint64_t{4} << 20;
  const int32_t dtype = storage_dtype(tensor.dtype);
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
      const double value = check::load(part.data(), dtype, static_cast<int64_t>(index));
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
