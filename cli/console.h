// What every subcommand shares: exit codes, the error that ends one, JSON on standard output.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "flashmhc/flashmhc.h"

namespace fmhc::cli {

using Json = nlohmann::ordered_json;

enum ExitCode : int {
  kExitOk = 0,
  kExitNo = 1,    // the answer is no: a bound is exceeded, nothing can serve the problem
  kExitBad = 2,   // bad usage or a bad file
  kExitBug = 70,  // a bug of ours
};

// Ends a subcommand: main prints "flashmhc NAME: text" on standard error and exits with the code.
class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& text) : std::runtime_error(text), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// The library's answer as a Failure: FMHC_INVALID is bad usage, FMHC_INTERNAL a bug, all others a plain no.
void require_ok(int32_t code, const fmhc_diag& diag);

// Adds the flag `--json`, described as printing one JSON object on standard output.
CLI::Option* add_json_flag(CLI::App& app, bool* json);

// One object and a newline on standard output. Floats keep their shortest exact form; NaN and infinity print
// as null.
void print_json(const Json& value);
// The same on one line, for logs and series.
void print_json_line(const Json& value);

// A table for people: columns as wide as their widest cell, the first row underlined. Numbers align to the
// right.
void print_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace fmhc::cli
