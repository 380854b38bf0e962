// Chooses a kernel and a split for every token range. Pure: reads the kernel tables and its arguments,
// nothing else.
#pragma once

#include "plan/plan.h"

namespace fmhc {

struct Hints {
  int32_t split_k = 0;
  int32_t split_policy = FMHC_SPLIT_AUTO;
  const char* kernel = nullptr;
};

// FMHC_UNSUPPORTED names the closest kernel and its reason.
int32_t choose_kernels(const Problem& problem, const Target& target, const Hints& hints, PlanData* out,
                       fmhc_diag* diag);

// Predicted microseconds of one run; the cost model in one place.
double predicted_us(const KernelEntry& kernel, const Problem& problem, const Target& target, int64_t tokens,
                    int32_t split_k);

// True if `prefix` is the kernel's name or ends at one of its dots.
bool matches_name(const char* name, const char* prefix);

int32_t read_hints(const fmhc_hints* given, Hints* out, fmhc_diag* diag);

}  // namespace fmhc
