// One operator at one shape, timed. Its tensors exist in several copies, used in turn, so that nothing that a
// call reads is in a cache from the call before, unless the copies are asked to be one.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cli/console.h"

namespace fmhc::cli {

struct BenchTiming {
  double us;      // median of the samples, each the mean of several calls
  double spread;  // (90th - 10th percentile) / median
  int samples, calls;
};

class BenchCase {
 public:
  // Makes the plan and the tensors; `rotate_bytes` is what all copies of the tensors together reach at least.
  BenchCase(const fmhc_problem& problem, const fmhc_target& target, const fmhc_hints& hints,
            const fmhc_executor& executor, int64_t rotate_bytes);

  BenchTiming time(int samples, double sample_us);

  // Every tensor once, and the operations of the formulas: the least that any kernel does.
  double bytes() const { return bytes_; }
  double flops() const;

  const char* kernel() const { return fmhc_plan_kernel(&plan_, problem_.max_tokens); }
  int32_t split_k() const { return fmhc_plan_split_k(&plan_, problem_.max_tokens); }
  int copies() const { return static_cast<int>(calls_.size()); }

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  using Buffer = std::unique_ptr<std::byte, Free>;

  std::byte* allocate(size_t bytes);
  void add_copy();
  void pack(fmhc_args* args);
  void run_next();

  fmhc_problem problem_;
  const fmhc_executor& executor_;
  fmhc_plan plan_{};
  double bytes_ = 0;
  std::vector<Buffer> memory_;
  std::byte* scratch_ = nullptr;
  std::byte* state_ = nullptr;
  std::vector<fmhc_args> calls_;
  size_t next_ = 0;
  uint32_t seed_ = 1;
};

}  // namespace fmhc::cli
