#include "plan/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace fmhc {

void JsonWriter::put(char byte) {
  if (size_ < capacity_) out_[size_] = byte;
  ++size_;
}

void JsonWriter::put_all(const char* bytes, size_t count) {
  for (size_t index = 0; index < count; ++index) put(bytes[index]);
}

void JsonWriter::put_quoted(const char* value) {
  constexpr char kHex[] = "0123456789abcdef";
  put('"');
  for (; *value != '\0'; ++value) {
    const auto byte = static_cast<unsigned char>(*value);
    if (byte < 0x20 || byte >= 0x7f) {
      // Callers' text may be of any encoding: a byte outside ASCII is shown as the code point of its number.
      const char escape[] = {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
      put_all(escape, sizeof escape);
      continue;
    }
    if (byte == '"' || byte == '\\') put('\\');
    put(*value);
  }
  put('"');
}

void JsonWriter::separate() {
  if (!first_) put_all(", ", 2);
  first_ = false;
}

JsonWriter& JsonWriter::key(const char* name) {
  separate();
  put_quoted(name);
  put_all(": ", 2);
  first_ = true;  // the value needs no comma
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  put(bracket);
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  put(bracket);
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::text(const char* value) {
  separate();
  if (value == nullptr) {
    put_all("null", 4);
  } else {
    put_quoted(value);
  }
  return *this;
}

JsonWriter& JsonWriter::integer(int64_t value) {
  separate();
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  put_all(digits, static_cast<size_t>(end - digits));
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) return text(nullptr);
  separate();
  constexpr int kDigits = 6;
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, kDigits).ptr;
  put_all(digits, static_cast<size_t>(end - digits));
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
  separate();
  value ? put_all("true", 4) : put_all("false", 5);
  return *this;
}

size_t JsonWriter::finish() {
  put('\0');
  if (size_ > capacity_ && capacity_ > 0) out_[0] = '\0';
  return size_;
}

}  // namespace fmhc
