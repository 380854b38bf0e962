// An open regular file, read with pread. Not memory-mapped: a mapped file that is cut short while it is in
// use kills the process, a short read is an error.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/result.h"

namespace fmhc::io {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

class RegularFile {
 public:
  // Symbolic links are followed, because model caches are made of them; anything but a regular file is
  // refused without waiting for it (a FIFO) and without side effects (a device).
  static Result<RegularFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // Fills out from offset on. A file whose size is no longer the one of open() is an error.
  Status read(uint64_t offset, std::span<std::byte> out) const;

 private:
  RegularFile(std::string path, UniqueFd fd, uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
  Status check_size() const;

  std::string path_;
  UniqueFd fd_;
  uint64_t size_;
};

std::string os_error(int number);  // text of an errno value

}  // namespace fmhc::io
