// Results: figures that count what was asserted, JSON lines, and parts that run in child processes with a
// time limit, for one illegal access ends a process's device for good.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "case.h"

namespace fmhc_gpu {

struct Options {
  int32_t device = FMHC_CUDA;
  std::string out;     // directory of the JSON lines; empty: standard output alone
  std::string kernel;  // hint for every plan
  double seconds = 0;  // 0: the subcommand's own limit
  int64_t cases = 20000;
  uint64_t seed = 20261201;
  int64_t only = -1;    // fuzz: this case alone
  bool strict = false;  // bounds of double arithmetic, for the reference backend
  std::map<std::string, std::string> values;

  std::vector<std::string> list(const std::string& key, const std::string& fallback) const;
  std::vector<int64_t> numbers(const std::string& key, const std::string& fallback) const;
};

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::string json_text(const std::string& text);  // quoted and escaped

// What a part ends with, as an exit status. Not run is neither: the card or the build lacks what it needs.
enum Result { kPassed = 0, kFailed = 1, kNotRun = 77 };
inline Result merge(Result a, Result b) {
  if (a == kFailed || b == kFailed) return kFailed;
  return a == kPassed || b == kPassed ? kPassed : kNotRun;
}

// One figure: what was asserted, and how it went. Prints and appends itself once.
class Figure {
 public:
  Figure(const Options& options, std::string name) : options_(options), name_(std::move(name)) {}

  void pass(int64_t asserted = 1) { asserted_ += asserted; }
  void fail(const std::string& where, const std::string& what);  // the first few are printed
  void absent(const std::string& what);                          // counted by its text, not a pass
  void count(const std::string& label) { ++tallies_[label]; }
  void ratio(const std::string& output, double worst);
  void note(const std::string& key, const std::string& value) { notes_[key] = value; }
  // An outcome of Judge: one assertion an output.
  void add(const CaseSpec& spec, const std::string& kernel, const Outcome& outcome);
  Result finish();  // writes the line; passes when nothing failed and something was asserted
  int64_t failures() const { return failures_; }

 private:
  const Options& options_;
  std::string name_;
  Clock clock_;
  int64_t asserted_ = 0, failures_ = 0;
  std::map<std::string, int64_t> absent_, tallies_;
  std::map<std::string, double> worst_;
  std::map<std::string, std::string> notes_;
  std::vector<std::string> first_;
};

struct Part {
  const char* name;
  double seconds;  // hard limit of the child
  Result (*run)(const Options&);
};

// Runs every part in a child of this program and prints a table.
Result run_parts(const Options& options, const char* subcommand, const std::vector<Part>& parts,
                 double seconds);
// In a child: the process dies with a message after this long.
void arm_timeout(double seconds);
void append_line(const Options& options, const std::string& file, const std::string& line);

}  // namespace fmhc_gpu
