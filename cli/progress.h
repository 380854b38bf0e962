// A progress bar on standard error, drawn only where that is a terminal, at most ten times a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fmhc::cli {

class Progress {
 public:
  Progress(std::string label, int64_t total);
  ~Progress();  // erases the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(int64_t steps = 1);

 private:
  void draw() const;

  std::string label_;
  int64_t total_;
  int64_t done_ = 0;
  bool shown_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace fmhc::cli
