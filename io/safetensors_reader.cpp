#include "io/safetensors_reader.h"

#include <array>

namespace fmhc::io {
namespace {

constexpr uint64_t kLengthBytes = 8;

Result<uint64_t> header_length(const RegularFile& file, const Limits& limits) {
  const auto fault = [&](Errc code, uint64_t given, std::string wanted) {
    return Fault{code, file.path(), "header length", std::to_string(given), std::move(wanted)};
  };
  if (file.size() < kLengthBytes) {
    return Fault{Errc::kTooShort, file.path(), "", std::to_string(file.size()) + " bytes", "at least 8"};
  }
  std::array<std::byte, kLengthBytes> raw;
  if (Status read = file.read(0, raw); !read) return read.fault();
  uint64_t length = 0;  // little-endian on disk
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | std::to_integer<uint64_t>(raw[i]);
  constexpr uint64_t kEmptyObject = 2;
  if (length < kEmptyObject) return fault(Errc::kHeaderTooShort, length, "at least 2");
  if (length > limits.header_bytes) {
    return fault(Errc::kHeaderTooLong, length, "at most " + std::to_string(limits.header_bytes));
  }
  if (length > file.size() - kLengthBytes) {
    return fault(Errc::kHeaderPastEnd, length,
                 "at most the file's " + std::to_string(file.size() - kLengthBytes));
  }
  return length;
}

}  // namespace

Result<SafetensorsReader> SafetensorsReader::open(const std::string& path, const Limits& limits) {
  auto file = RegularFile::open(path);
  if (!file) return file.fault();
  const auto length = header_length(*file, limits);
  if (!length) return length.fault();
  Buffer text(*length);
  if (!text.allocated()) {
    return Fault{Errc::kOutOfMemory, path, "header", std::to_string(*length) + " bytes", "memory for it"};
  }
  if (Status read = file->read(kLengthBytes, text.bytes()); !read) return read.fault();
  const uint64_t data_begin = kLengthBytes + *length;
  auto header = parse_safetensors_header({reinterpret_cast<const char*>(text.data()), text.size()},
                                         file->size() - data_begin, path, limits);
  if (!header) return header.fault();
  return SafetensorsReader(std::move(*file), std::move(*header), data_begin);
}

Result<HostTensor> SafetensorsReader::read(const TensorInfo& tensor) const {
  HostTensor out{tensor.dtype, tensor.shape, Buffer(tensor.bytes())};
  if (!out.buffer.allocated()) {
    return Fault{Errc::kOutOfMemory, path(), tensor.name, std::to_string(tensor.bytes()) + " bytes",
                 "memory for it"};
  }
  if (Status read = read_part(tensor, 0, out.buffer.bytes()); !read) return read.fault();
  return out;
}

Result<HostTensor> SafetensorsReader::read(std::string_view name) const {
  const TensorInfo* tensor = find(name);
  if (!tensor) return Fault{Errc::kMissingTensor, path(), std::string(name), "", "a tensor of this name"};
  return read(*tensor);
}

Status SafetensorsReader::read_part(const TensorInfo& tensor, uint64_t offset,
                                    std::span<std::byte> out) const {
  if (offset > tensor.bytes() || out.size() > tensor.bytes() - offset) {
    return Fault{Errc::kBadRequest, path(), tensor.name,
                 std::to_string(out.size()) + " bytes at " + std::to_string(offset),
                 "a range within " + std::to_string(tensor.bytes())};
  }
  return file_.read(data_begin_ + tensor.begin + offset, out);
}

}  // namespace fmhc::io
