#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace fmhc::io {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string os_error(int number) {
  return std::generic_category().message(number);
}

Result<RegularFile> RegularFile::open(const std::string& path) {
  const Fault not_a_file{Errc::kNotAFile, path, "", "a directory, device, pipe or socket", "a regular file"};
  // Asked before opening, because opening some devices has effects, and again after, for the same object.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return Fault{Errc::kCannotOpen, path, "", os_error(errno), "a readable file"};
  }
  if (!S_ISREG(info.st_mode)) return not_a_file;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return Fault{Errc::kCannotOpen, path, "", os_error(errno), "a readable file"};
  }
  if (!S_ISREG(info.st_mode)) return not_a_file;
  return RegularFile(path, std::move(fd), static_cast<uint64_t>(info.st_size));
}

Status RegularFile::check_size() const {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) return Fault{Errc::kReadFailed, path_, "", os_error(errno), ""};
  const auto now = static_cast<uint64_t>(info.st_size);
  if (now == size_) return ok_status();
  return Fault{Errc::kFileChanged, path_, "", std::to_string(now) + " bytes",
               std::to_string(size_) + " as opened"};
}

Status RegularFile::read(uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    return Fault{Errc::kBadRequest, path_, "byte " + std::to_string(offset),
                 std::to_string(out.size()) + " bytes", "a range within " + std::to_string(size_)};
  }
  constexpr size_t kMostAtOnce = size_t{1} << 30;
  for (size_t done = 0; done < out.size();) {
    const size_t wanted = std::min(out.size() - done, kMostAtOnce);
    const ssize_t got = ::pread(fd_.get(), out.data() + done, wanted, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return Fault{Errc::kReadFailed, path_, "byte " + std::to_string(offset + done), os_error(errno), ""};
    if (got == 0) {
      return Fault{Errc::kFileChanged, path_, "", "an end at byte " + std::to_string(offset + done),
                   std::to_string(size_) + " bytes as opened"};
    }
    done += static_cast<size_t>(got);
  }
  return check_size();
}

}  // namespace fmhc::io
