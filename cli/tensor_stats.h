// Statistics of a stored tensor of floating point, read in pieces.
#pragma once

#include <cstdint>

#include "io/safetensors_reader.h"

namespace fmhc::cli {

struct TensorStats {
  uint64_t count = 0, non_finite = 0;
  double min = 0, max = 0, mean = 0, rms = 0;  // of the finite values; 0 if there is none

  uint64_t finite() const { return count - non_finite; }
};

// For a dtype that the library has (storage_dtype is not 0).
io::Result<TensorStats> tensor_stats(const io::SafetensorsReader& file, const io::TensorInfo& tensor);

}  // namespace fmhc::cli
