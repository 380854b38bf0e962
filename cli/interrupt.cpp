#include "cli/interrupt.h"

#include <iterator>

#include "cli/console.h"

namespace fmhc::cli {
namespace {

volatile std::sig_atomic_t g_signal = 0;

void note_signal(int number) {
  g_signal = number;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

void InterruptGuard::check() const {
  if (g_signal != 0) throw Failure(128 + g_signal, "interrupted; nothing was written");
}

}  // namespace fmhc::cli
