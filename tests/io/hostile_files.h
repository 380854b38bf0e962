// The corpus of hostile safetensors files and shard indices: a name, the bytes, and the fault that a reader
// has to report. Bytes are made on demand, so that the list can be walked by other tests as well.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/result.h"

namespace fmhc::io::test {

struct HostileFile {
  std::string name;
  Errc wanted;
  std::function<std::string()> bytes;
};

std::vector<HostileFile> hostile_lengths();      // the length field and the file's size
std::vector<HostileFile> hostile_syntax();       // text that is no JSON object of the format
std::vector<HostileFile> hostile_values();       // JSON values of a wrong type or range
std::vector<HostileFile> hostile_layouts();      // shapes, dtypes and spans that do not fit each other
std::vector<HostileFile> hostile_safetensors();  // all of the above
std::vector<HostileFile> hostile_indices();      // documents for parse_shard_index

}  // namespace fmhc::io::test
