// Result of a file operation: a value, or a fault that says which class of error it is and names the
// file, the tensor or key, what was given and what is wanted. One code for each class, so that a caller
// (and a test) need not read the text. Nothing in io throws across its interface.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace fmhc::io {

enum class Errc : uint8_t {
  kNotAFile,        // a directory, FIFO, device or socket
  kCannotOpen,      // missing, no permission, out of descriptors
  kReadFailed,      // the operating system refused a read
  kFileChanged,     // size differs from the one that was validated
  kOutOfMemory,     // an allocation failed
  kTooShort,        // too few bytes for the length field
  kHeaderTooShort,  // header length below that of an empty object
  kHeaderTooLong,   // header length above the limit
  kHeaderPastEnd,   // header length above what the file holds
  kBadStart,        // the header does not begin with '{' (a byte order mark, white space, an array)
  kBadUtf8,         // a string is not UTF-8
  kBadJson,         // not JSON: syntax, NUL bytes, data after the object
  kTooDeep,         // nesting above the limit
  kBadNumber,       // a number that is not an unsigned 64-bit integer
  kBadType,         // a value of another JSON type than the one wanted here
  kDuplicateKey,    // the same key twice in one object
  kUnknownKey,      // a tensor field that the format does not have
  kMissingField,    // a tensor without dtype, shape or data_offsets
  kBadName,         // a name with control characters
  kNameTooLong,
  kTooManyTensors,
  kRankTooHigh,
  kUnknownDtype,
  kShapeOverflow,    // elements or bits do not fit in 63 bits
  kSubByte,          // elements of less than a byte that do not fill whole bytes
  kBadOffsets,       // not two numbers, or begin above end
  kSpanMismatch,     // bytes of the span differ from those of shape and dtype
  kPastEnd,          // a span that ends behind the data
  kGap,              // bytes between two tensors that belong to none
  kOverlap,          // bytes that belong to two tensors
  kTail,             // bytes behind the last tensor
  kMissingTensor,    // an expected tensor is not there
  kWrongDtype,       // an expected tensor has another dtype
  kWrongShape,       // an expected tensor has another shape
  kMissingMetadata,  // an expected metadata entry is not there
  kBadMetadata,      // a metadata entry that cannot be read as its type, or out of range
  kWrongFormat,      // not the format that the caller asked for
  kPathEscape,       // a shard path that leaves the directory of its index
  kBadRequest,       // the caller's argument does not fit the file
  kWriteFailed,      // the operating system refused a write, sync or rename
  kIncomplete,       // commit before every tensor was written in full
};

// The code's name in snake_case, for messages and JSON.
const char* errc_name(Errc code);

struct Fault {
  Errc code;
  std::string file;
  std::string where;  // tensor, key or byte position; may be empty
  std::string given;
  std::string wanted;

  // One line: file, place, given, wanted. Control characters are shown as escapes.
  std::string message() const;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Fault fault) : state_(std::move(fault)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Fault& fault() const { return std::get<1>(state_); }

 private:
  std::variant<T, Fault> state_;
};

using Status = Result<std::monostate>;
inline Status ok_status() {
  return std::monostate{};
}

}  // namespace fmhc::io
