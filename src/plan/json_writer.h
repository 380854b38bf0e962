// Writes JSON into a caller's buffer and counts what the whole text takes. Never allocates and never writes
// past the buffer; numbers do not follow the locale.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fmhc {

class JsonWriter {
 public:
  // out: [capacity] bytes, or null with capacity 0 to count only.
  JsonWriter(char* out, size_t capacity) : out_(out), capacity_(capacity) {}

  // In an object every value follows its key. A null text is written as null, a non-finite number too.
  JsonWriter& key(const char* name);
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& text(const char* value);
  JsonWriter& integer(int64_t value);
  JsonWriter& number(double value);
  JsonWriter& boolean(bool value);

  // Ends the text with NUL. Returns the bytes of the whole text, NUL included; if that is more than the
  // capacity the buffer holds an empty string.
  size_t finish();

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void put(char byte);
  void put_all(const char* bytes, size_t count);
  void put_quoted(const char* value);

  char* out_;
  size_t capacity_;
  size_t size_ = 0;
  bool first_ = true;  // of the innermost object or array
};

}  // namespace fmhc
