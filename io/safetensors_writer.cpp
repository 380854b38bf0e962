#include "io/safetensors_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace fmhc::io {
namespace {

// The real place of the file: through a symbolic link to what it names, so that the rename replaces the
// file and not the link. What exists there has to be a regular file, or /dev/null would become one.
Result<std::string> resolve_target(const std::string& path) {
  if (path.empty()) return Fault{Errc::kWriteFailed, "\"\"", "", "an empty path", "a file name"};
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return Fault{Errc::kNotAFile, path, "", "a directory, device, pipe or socket",
                 "a regular file or a new name"};
  }
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) return path;
  const auto target = std::filesystem::weakly_canonical(path, error);
  if (error) return Fault{Errc::kWriteFailed, path, "symbolic link", error.message(), "a link that resolves"};
  return target.string();
}

std::string temp_name(const std::string& path) {
  static std::atomic<unsigned> serial{0};
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
}

std::string header_text(const Metadata& metadata, const std::vector<TensorInfo>& tensors) {
  using Json = nlohmann::ordered_json;
  std::string text = "{";
  // Joined member by member: a JSON object would swallow a name that is declared twice.
  const auto add = [&text](const std::string& key, const Json& value) {
    if (text.size() > 1) text += ',';
    text += Json(key).dump() + ':' + value.dump();
  };
  if (!metadata.empty()) add("__metadata__", metadata);
  for (const TensorInfo& tensor : tensors) {
    add(tensor.name, {{"dtype", dtype_name(tensor.dtype)},
                      {"shape", tensor.shape},
                      {"data_offsets", {tensor.begin, tensor.end}}});
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts on a multiple of 8
  return text;
}

// Widest elements first, as the format's own writer does: every tensor is then aligned to its element.
Result<std::vector<TensorInfo>> lay_out(std::vector<TensorSpec> specs, const std::string& path) {
  std::sort(specs.begin(), specs.end(), [](const TensorSpec& a, const TensorSpec& b) {
    const uint32_t wide = dtype_bits(a.dtype), other = dtype_bits(b.dtype);
    return wide != other ? wide > other : a.name < b.name;
  });
  std::vector<TensorInfo> tensors;
  tensors.reserve(specs.size());
  uint64_t reached = 0;
  for (TensorSpec& spec : specs) {
    const auto bits = tensor_bits(spec.dtype, spec.shape);
    uint64_t end = 0;
    if (!bits || *bits % 8 != 0 || __builtin_add_overflow(reached, *bits / 8, &end) || end >> 62) {
      return Fault{Errc::kShapeOverflow, path, spec.name, shape_text(spec.shape),
                   "a size that a file can have"};
    }
    tensors.push_back({std::move(spec.name), spec.dtype, std::move(spec.shape), reached, end});
    reached = end;
  }
  return tensors;
}

}  // namespace

SafetensorsWriter::TempFile::~TempFile() {
  if (!path.empty()) ::unlink(path.c_str());
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path, const Metadata& metadata,
                                                    std::vector<TensorSpec> specs) {
  auto tensors = lay_out(std::move(specs), path);
  if (!tensors) return tensors.fault();
  const uint64_t data_bytes = tensors->empty() ? 0 : tensors->back().end;
  std::string text;
  try {
    text = header_text(metadata, *tensors);
  } catch (const nlohmann::json::exception&) {  // a name that is not UTF-8
    return Fault{Errc::kBadUtf8, path, "header", "a name or metadata entry", "UTF-8"};
  }
  // What this writer writes, this project's reader accepts: names unique and within the limits.
  if (const auto parsed = parse_safetensors_header(text, data_bytes, path); !parsed) return parsed.fault();

  const auto target = resolve_target(path);
  if (!target) return target.fault();
  SafetensorsWriter writer(*target, "");
  const std::string temp = temp_name(*target);
  writer.fd_ = UniqueFd(::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!writer.fd_) return Fault{Errc::kWriteFailed, temp, "", os_error(errno), "a new file"};
  writer.temp_.path = temp;
  writer.data_begin_ = 8 + text.size();
  writer.data_bytes_ = data_bytes;
  for (const TensorInfo& tensor : *tensors) {
    writer.slots_[tensor.name] = {writer.data_begin_ + tensor.begin, writer.data_begin_ + tensor.end};
  }
  std::string head(8, '\0');  // little-endian length
  for (size_t i = 0; i < head.size(); ++i) head[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  head += text;
  if (Status put = writer.put(0, std::as_bytes(std::span(head))); !put) return put.fault();
  if (Status reserved = writer.reserve(); !reserved) return reserved.fault();
  return writer;
}

// Takes the whole size at once, so that a full disk is known before the work and not near its end.
Status SafetensorsWriter::reserve() {
  const auto size = static_cast<off_t>(file_bytes());
  if (::fallocate(fd_.get(), 0, 0, size) == 0) return ok_status();
  // Some file systems cannot reserve.
  if (errno == EOPNOTSUPP && ::ftruncate(fd_.get(), size) == 0) return ok_status();
  return Fault{Errc::kWriteFailed, path_, std::to_string(size) + " bytes", os_error(errno), "room for them"};
}

Status SafetensorsWriter::put(uint64_t offset, std::span<const std::byte> bytes) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;
  while (!bytes.empty()) {
    const size_t wanted = std::min(bytes.size(), kMostAtOnce);
    const ssize_t done = ::pwrite(fd_.get(), bytes.data(), wanted, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      return Fault{Errc::kWriteFailed, path_, "byte " + std::to_string(offset),
                   os_error(done < 0 ? errno : ENOSPC), ""};
    }
    offset += static_cast<uint64_t>(done);
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return ok_status();
}

Status SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  const auto slot = slots_.find(name);
  if (slot == slots_.end()) {
    return Fault{Errc::kMissingTensor, path_, std::string(name), "", "a tensor that was declared"};
  }
  const uint64_t room = slot->second.end - slot->second.next;
  if (bytes.size() > room) {
    return Fault{Errc::kBadRequest, path_, std::string(name), std::to_string(bytes.size()) + " bytes",
                 "at most the missing " + std::to_string(room)};
  }
  if (Status put = this->put(slot->second.next, bytes); !put) return put;
  slot->second.next += bytes.size();
  return ok_status();
}

Status SafetensorsWriter::commit() {
  if (!fd_) return Fault{Errc::kBadRequest, path_, "commit", "a second call", "one"};
  for (const auto& [name, slot] : slots_) {
    if (slot.next != slot.end) {
      return Fault{Errc::kIncomplete, path_, name,
                   std::to_string(slot.end - slot.next) + " bytes not written", "every tensor in full"};
    }
  }
  const auto failed = [&](const char* step) {
    return Fault{Errc::kWriteFailed, path_, step, os_error(errno), ""};
  };
  if (::fsync(fd_.get()) != 0) return failed("fsync");
  if (::rename(temp_.path.c_str(), path_.c_str()) != 0) return failed("rename");
  temp_.path.clear();
  fd_.reset();
  // The rename is durable once the directory is; a file system that cannot sync one is not a failure.
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  const UniqueFd directory(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) ::fsync(directory.get());
  return ok_status();
}

}  // namespace fmhc::io
