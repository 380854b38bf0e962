#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

namespace fmhc::cli {
namespace {

constexpr int64_t kBarWidth = 30;
constexpr std::chrono::milliseconds kBetweenDraws{100};

}  // namespace

Progress::Progress(std::string label, int64_t total)
    : label_(std::move(label)), total_(std::max<int64_t>(total, 1)), shown_(isatty(STDERR_FILENO) != 0) {
  if (shown_) draw();
  drawn_ = std::chrono::steady_clock::now();
}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::advance(int64_t steps) {
  done_ = std::min(done_ + steps, total_);
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < kBetweenDraws) return;
  drawn_ = now;
  draw();
}

void Progress::draw() const {
  const int64_t filled = kBarWidth * done_ / total_;
  const std::string bar(static_cast<size_t>(filled), '#');
  std::fprintf(stderr, "\r%s [%-30s] %" PRId64 "/%" PRId64 "\033[K", label_.c_str(), bar.c_str(), done_,
               total_);
  std::fflush(stderr);
}

}  // namespace fmhc::cli
