// Base of the project's JSON consumers: nlohmann's event interface with limits on top, so that a hostile
// document is refused at its first wrong event and no tree of it is ever built. Numbers are unsigned 64-bit
// integers or errors; every value of a type that the derived class does not handle is an error.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "io/limits.h"
#include "io/result.h"

namespace fmhc::io {

class LimitedSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  LimitedSax(std::string file, const Limits& limits) : limits_(limits), file_(std::move(file)) {}

  // Feeds the whole text, which must be one object. The text is not kept.
  Status parse(std::string_view text);

  bool null() override { return wrong_type("null"); }
  bool boolean(bool) override { return wrong_type("a boolean"); }
  bool number_integer(number_integer_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool number_unsigned(number_unsigned_t) override { return wrong_type("a number"); }
  bool string(string_t&) override { return wrong_type("a string"); }
  bool binary(binary_t&) override { return wrong_type("binary data"); }
  bool start_object(std::size_t) final { return enter(true); }
  bool start_array(std::size_t) final { return enter(false); }
  bool end_object() final;
  bool end_array() final;
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override;

 protected:
  // Called with depth() already counting the new level (1 is the outer object), or still counting the old.
  virtual bool on_enter(bool is_object) = 0;
  virtual bool on_leave() = 0;

  int depth() const { return depth_; }
  const Limits& limits() const { return limits_; }
  const std::string& file() const { return file_; }
  virtual std::string place() const = 0;  // names the current position for messages
  virtual std::string wanted_here() const = 0;
  bool fail(Errc code, std::string given, std::string wanted);
  bool wrong_type(const char* given) { return fail(Errc::kBadType, given, wanted_here()); }
  // Rejects control characters and overlong names.
  bool check_name(const std::string& name);

 private:
  bool enter(bool is_object);

  Limits limits_;
  std::string file_;
  int depth_ = 0;
  bool failed_ = false;
  Fault fault_{};
};

}  // namespace fmhc::io
