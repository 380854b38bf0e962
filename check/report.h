// What a comparison found, in numbers and in one line.
#pragma once

#include <string>
#include <vector>

#include "check/tensors.h"

namespace fmhc::check {

// One condition: holds while measured <= limit.
struct Outcome {
  const char* rule;
  double measured = 0, limit = 0;
  bool holds = true;
};

struct TensorReport {
  std::string tensor;
  std::vector<int64_t> shape;
  int64_t count = 0;       // elements compared
  int64_t violations = 0;  // beyond the elementwise bound, or NaN or infinite where it should not be
  double max_abs = 0;      // largest |got - wanted|
  double relative_norm = 0;
  // The worst element by distance over bound.
  int64_t worst = -1;
  double got = 0, wanted = 0, bound = 0, ratio = 0;
  std::vector<Outcome> outcomes;

  bool passed() const;
  const char* failed_rule() const;  // null when passed
  std::vector<int64_t> worst_index() const;
  std::string text() const;  // "comb_mix[3, 0, 2]: bound: got 0.25, wanted 0.125, off by 0.125 > 1e-06"
};

struct Report {
  std::string error;  // the oracle did not run; nothing was compared
  std::vector<TensorReport> tensors;

  bool passed() const;
  const TensorReport* find(const std::string& tensor) const;
  std::string text() const;  // of what failed, a line each
};

}  // namespace fmhc::check
