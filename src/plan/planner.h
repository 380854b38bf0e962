// Chooses a kernel and a split for every token range. Pure: reads the kernel table and its arguments, nothing
// else. The table is a parameter, so that a test can plan with kernels of its own.
#pragma once

#include "plan/plan.h"

namespace fmhc {

using KernelTable = std::span<const KernelEntry>;

struct Hints {
  int32_t split_k = 0;
  int32_t split_policy = FMHC_SPLIT_AUTO;
  const char* kernel = nullptr;
};

// Rows whose backend is not part of this build can be planned for, but not run.
enum class Build : uint8_t { kThisBuild, kEveryBackend };

// What a kernel would do at one token count.
struct Choice {
  int kernel = -1;  // index into the table
  int32_t split_k = 1;
  uint32_t variant = 0;

  bool operator==(const Choice&) const = default;
};

// FMHC_UNSUPPORTED names the closest kernel and its reason.
int32_t choose_kernels(KernelTable kernels, const Problem& problem, const Target& target, const Hints& hints,
                       Build build, PlanData* out, fmhc_diag* diag);

// FMHC_OK if this kernel can serve the problem with these hints; the reason otherwise.
int32_t eligible(const KernelEntry& kernel, const Problem& problem, const Target& target, const Hints& hints,
                 Build build, fmhc_diag* why);

// The slices of K that the hints ask of a kernel that splits.
int32_t split_for(const Problem& problem, const Target& target, const Hints& hints, int64_t tokens);

// What row `kernel` of the table would do with `tokens` tokens.
Choice choice_of(KernelTable kernels, int kernel, const Problem& problem, const Target& target,
                 const Hints& hints, int64_t tokens);

// Predicted microseconds of one run; the cost model in one place.
double predicted_us(const KernelEntry& kernel, const Problem& problem, const Target& target, int64_t tokens,
                    int32_t split_k);

// True if `prefix` is the kernel's name or ends at one of its dots.
bool matches_name(const char* name, const char* prefix);

int32_t read_hints(const fmhc_hints* given, Hints* out, fmhc_diag* diag);

}  // namespace fmhc
