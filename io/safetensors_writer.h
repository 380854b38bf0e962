// Writes a safetensors file whose tensors are declared first and filled later, in any order and in pieces,
// so that a large file never has to be in memory. The file appears under its name by one rename at commit();
// until then, and after any failure, an older file of that name is untouched and nothing else is left behind.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/safetensors_header.h"

namespace fmhc::io {

struct TensorSpec {
  std::string name;
  Dtype dtype;
  Shape shape;
};

class SafetensorsWriter {
 public:
  static Result<SafetensorsWriter> create(const std::string& path, const Metadata& metadata,
                                          std::vector<TensorSpec> tensors);
  SafetensorsWriter(SafetensorsWriter&&) = default;
  SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
  ~SafetensorsWriter() = default;

  uint64_t file_bytes() const { return data_begin_ + data_bytes_; }
  // Appends to the tensor what follows what was already written of it.
  Status write(std::string_view name, std::span<const std::byte> bytes);
  Status commit();

 private:
  // Removes the unfinished file unless it was released to its final name.
  struct TempFile {
    explicit TempFile(std::string name) : path(std::move(name)) {}
    TempFile(TempFile&& other) noexcept : path(std::exchange(other.path, {})) {}
    TempFile& operator=(TempFile&&) = delete;
    ~TempFile();
    std::string path;
  };
  struct Slot {
    uint64_t next, end;  // file offsets
  };

  SafetensorsWriter(std::string path, std::string temp) : path_(std::move(path)), temp_(std::move(temp)) {}
  Status reserve();
  Status put(uint64_t offset, std::span<const std::byte> bytes);

  std::string path_;
  TempFile temp_;
  UniqueFd fd_;
  uint64_t data_begin_ = 0, data_bytes_ = 0;
  std::map<std::string, Slot, std::less<>> slots_;
};

}  // namespace fmhc::io
