// The inside of an fmhc_plan: a value that the planner fills and fmhc_run reads.
#pragma once

#include <cstring>

#include "core/status.h"
#include "kernels/entry.h"

namespace fmhc {

// Token counts up to and including `last_tokens` (and above the previous range) run this kernel.
struct Range {
  int64_t last_tokens;
  uint16_t kernel;  // index into all_kernels()
  uint16_t split_k;
  uint32_t variant;
};

inline constexpr int kMaxRanges = 20;

struct PlanData {
  uint64_t build_id;
  Problem problem;
  Target target;
  uint64_t scratch_bytes, state_bytes, packed_bytes;
  int64_t num_ranges;
  Range ranges[kMaxRanges];

  const Range& range_for(int64_t tokens) const {
    int index = 0;
    while (index + 1 < num_ranges && tokens > ranges[index].last_tokens) ++index;
    return ranges[index];
  }
};
static_assert(sizeof(PlanData) <= sizeof(fmhc_plan{}.opaque));

using PackFn = decltype(KernelEntry::pack);

// True if no earlier range packs fn in the way of this one.
bool first_to_pack(std::span<const KernelEntry> kernels, const PlanData& plan, int64_t range);

// Where the weights that `pack` writes begin in the plan's packed buffer: one section for every way of
// packing, in the order of the ranges. The size of the whole for nullptr.
size_t packed_offset(std::span<const KernelEntry> kernels, const PlanData& plan, PackFn pack);

// Differs between builds and, with address randomisation, between processes.
uint64_t build_id();

// FMHC_INVALID for anything that make_plan of this process did not write.
int32_t open_plan(const fmhc_plan* plan, PlanData* out, fmhc_diag* diag);

}  // namespace fmhc
