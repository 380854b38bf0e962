// Measured times that correct the cost model. A point says what one kernel took for one shape on one card;
// between two points of a kernel and hidden size the ratio of measured to modelled time is interpolated over
// log T, beyond them it stays that of the last.
#pragma once

#include "plan/planner.h"

namespace fmhc {

struct TunedPoint {
  const char* kernel;  // its whole name
  int64_t hidden;      // with 4 streams of bf16
  int64_t tokens;
  double us;  // median, cold caches
  const char* card;
  const char* date;  // of the measurement, year-month-day
};

using TunedPoints = std::span<const TunedPoint>;

// The points for the target's architecture; none for a CPU.
TunedPoints tuned_points(const Target& target);

// The model's time, corrected by those points that speak of this kernel, hidden size and storage.
double corrected_us(TunedPoints points, const KernelEntry& kernel, const Problem& problem,
                    const Target& target, int64_t tokens, int32_t split_k);

}  // namespace fmhc
