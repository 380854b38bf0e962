#include "io/result.h"

#include <array>
#include <cstdio>

namespace fmhc::io {
namespace {

constexpr std::array kNames = {
    "not_a_file",
    "cannot_open",
    "read_failed",
    "file_changed",
    "out_of_memory",
    "too_short",
    "header_too_short",
    "header_too_long",
    "header_past_end",
    "bad_start",
    "bad_utf8",
    "bad_json",
    "too_deep",
    "bad_number",
    "bad_type",
    "duplicate_key",
    "unknown_key",
    "missing_field",
    "bad_name",
    "name_too_long",
    "too_many_tensors",
    "rank_too_high",
    "unknown_dtype",
    "shape_overflow",
    "sub_byte",
    "bad_offsets",
    "span_mismatch",
    "past_end",
    "gap",
    "overlap",
    "tail",
    "missing_tensor",
    "wrong_dtype",
    "wrong_shape",
    "missing_metadata",
    "bad_metadata",
    "wrong_format",
    "path_escape",
    "bad_request",
    "write_failed",
    "incomplete",
};
static_assert(kNames.size() == static_cast<size_t>(Errc::kIncomplete) + 1);

// Names come from files: they are shortened and escaped, so that a message stays one readable line.
void append_printable(std::string& out, const std::string& text) {
  constexpr size_t kMost = 160;
  for (size_t i = 0; i < text.size() && i < kMost; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      out += escape;
    } else {
      out += text[i];
    }
  }
  if (text.size() > kMost) out += "...";
}

}  // namespace

const char* errc_name(Errc code) {
  return kNames[static_cast<size_t>(code)];
}

std::string Fault::message() const {
  std::string text = file;
  if (!where.empty()) {
    text += ": ";
    append_printable(text, where);
  }
  text += ": ";
  text += errc_name(code);
  if (!given.empty()) {
    text += ": given ";
    append_printable(text, given);
  }
  if (!wanted.empty()) {
    text += ", wanted ";
    append_printable(text, wanted);
  }
  return text;
}

}  // namespace fmhc::io
