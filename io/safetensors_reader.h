// A safetensors file whose header and layout were validated before anything else was read or allocated.
// Reading a tensor reads only its span.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/safetensors_header.h"

namespace fmhc::io {

class SafetensorsReader {
 public:
  static Result<SafetensorsReader> open(const std::string& path, const Limits& limits = {});

  const std::string& path() const { return file_.path(); }
  const Metadata& metadata() const { return header_.metadata; }
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }  // in file order
  const TensorInfo* find(std::string_view name) const { return header_.find(name); }

  Result<HostTensor> read(const TensorInfo& tensor) const;
  Result<HostTensor> read(std::string_view name) const;
  // Fills out with the tensor's bytes from offset on: for tensors that are better seen in pieces.
  Status read_part(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const;

 private:
  SafetensorsReader(RegularFile file, SafetensorsHeader header, uint64_t data_begin)
      : file_(std::move(file)), header_(std::move(header)), data_begin_(data_begin) {}

  RegularFile file_;
  SafetensorsHeader header_;
  uint64_t data_begin_;
};

}  // namespace fmhc::io
