// The environment of the command line tool: one table of every FLASHMHC_* variable, read once at the start.
// The library itself reads none.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace fmhc::cli {

struct Variable {
  const char* name;
  const char* accepted;  // values separated by '|', or what kind of text
  bool closed;           // nothing but the listed values is accepted
  const char* read_by;
  const char* meaning;
};
std::span<const Variable> variables();

class Environment {
 public:
  // From lines of the form NAME=VALUE; those of other programs are skipped.
  explicit Environment(const std::vector<std::string>& lines);
  static Environment of_this_process();

  // The value, or "" where it is unset or empty.
  const std::string& value(const std::string& name) const;
  bool is_set(const std::string& name) const { return !value(name).empty(); }

  // Unknown FLASHMHC_* names and values outside the accepted ones, one line each.
  const std::vector<std::string>& unknown_names() const { return unknown_; }
  const std::vector<std::string>& bad_values() const { return bad_; }

  bool strict() const { return value("FLASHMHC_STRICT") == "1"; }

  // FLASHMHC_BACKEND and FLASHMHC_CPU_TARGET as a kernel prefix: "", "cpu", "cpu.avx2".
  std::string kernel_prefix() const;

 private:
  std::vector<std::string> values_;  // in the order of variables()
  std::vector<std::string> unknown_, bad_;
};

}  // namespace fmhc::cli
