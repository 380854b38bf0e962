// The JSON header of a safetensors file, parsed and validated as a whole: names unique, dtypes known, sizes
// checked against the spans, and the spans tiling the data exactly. Memory is proportional to the header's
// bytes; nothing of the size that a shape claims is ever allocated here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/limits.h"
#include "io/result.h"
#include "io/tensor.h"

namespace fmhc::io {

using Metadata = std::map<std::string, std::string, std::less<>>;

struct SafetensorsHeader {
  Metadata metadata;
  std::vector<TensorInfo> tensors;  // in the order of their spans

  const TensorInfo* find(std::string_view name) const;  // null if there is none

  std::vector<uint32_t> by_name;  // indices into tensors, sorted by name
};

// text: the header; data_bytes: what follows it in the file; file: for messages only.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                                   const std::string& file, const Limits& limits = {});

}  // namespace fmhc::io
