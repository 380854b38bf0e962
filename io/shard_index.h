// A sharded checkpoint's index: which file of its directory holds which tensor.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/limits.h"
#include "io/result.h"

namespace fmhc::io {

// Shard path, as written in the index and inside its directory -> names of its tensors.
using ShardIndex = std::map<std::string, std::vector<std::string>>;

// file: for messages only.
Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& file,
                                     const Limits& limits = {});

}  // namespace fmhc::io
