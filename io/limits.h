// What a file may ask of us before it is believed. The defaults hold every released checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fmhc::io {

struct Limits {
  uint64_t header_bytes = 100'000'000;  // the format's own limit
  size_t name_bytes = 1024;
  size_t tensors = 1'000'000;
  size_t rank = 8;
  int depth = 8;
  size_t shards = 10'000;
};

}  // namespace fmhc::io
