#include "io/json_sax.h"

#include <algorithm>

namespace fmhc::io {

Status LimitedSax::parse(std::string_view text) {
  if (text.empty() || text.front() != '{') {
    fail(Errc::kBadStart, text.empty() ? "nothing" : "byte " + std::to_string(static_cast<uint8_t>(text[0])),
         "an object that starts with '{'");
    return fault_;
  }
  // The library takes a NUL for the end of its input and would ignore what follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail(Errc::kBadJson, "a NUL at byte " + std::to_string(nul), "JSON text");
    return fault_;
  }
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), this);
  if (failed_) return fault_;
  if (!parsed) return Fault{Errc::kBadJson, file_, place(), "", "JSON text"};
  return ok_status();
}

bool LimitedSax::number_integer(number_integer_t value) {
  return fail(Errc::kBadNumber, std::to_string(value), "an unsigned integer");
}

bool LimitedSax::number_float(number_float_t, const string_t& text) {
  return fail(Errc::kBadNumber, text, "an unsigned integer of 64 bits");
}

bool LimitedSax::enter(bool is_object) {
  if (depth_ >= limits_.depth) {
    return fail(Errc::kTooDeep, "depth " + std::to_string(depth_ + 1),
                "at most " + std::to_string(limits_.depth));
  }
  ++depth_;
  return on_enter(is_object);
}

bool LimitedSax::end_object() {
  if (!on_leave()) return false;
  --depth_;
  return true;
}

bool LimitedSax::end_array() {
  return end_object();
}

bool LimitedSax::parse_error(std::size_t position, const std::string&,
                             const nlohmann::detail::exception& error) {
  constexpr int kNumberOutOfRange = 406;
  if (error.id == kNumberOutOfRange) {
    return fail(Errc::kBadNumber, "a number out of range", "an unsigned integer of 64 bits");
  }
  const bool utf8 = std::string_view(error.what()).find("ill-formed UTF-8") != std::string_view::npos;
  return fail(utf8 ? Errc::kBadUtf8 : Errc::kBadJson, "a fault at byte " + std::to_string(position),
              utf8 ? "UTF-8" : "JSON text");
}

bool LimitedSax::fail(Errc code, std::string given, std::string wanted) {
  if (!failed_) fault_ = {code, file_, place(), std::move(given), std::move(wanted)};
  failed_ = true;
  return false;
}

bool LimitedSax::check_name(const std::string& name) {
  if (name.size() > limits_.name_bytes) {
    return fail(Errc::kNameTooLong, std::to_string(name.size()) + " bytes",
                "at most " + std::to_string(limits_.name_bytes));
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), is_control)) {
    return fail(Errc::kBadName, name, "a name without control characters");
  }
  return true;
}

}  // namespace fmhc::io
