// Lets long work that owns a temporary file end by itself when the user interrupts it, so that the file goes.
#pragma once

#include <csignal>

namespace fmhc::cli {

class InterruptGuard {
 public:
  InterruptGuard();   // takes SIGINT, SIGTERM and SIGHUP
  ~InterruptGuard();  // gives them back
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Ends the work with a Failure of exit code 128 + signal if one came.
  void check() const;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3] = {};
};

}  // namespace fmhc::cli
