// Backend `cpu`: SIMD through Highway, compiled once for each instruction set; threads are the caller's
// executor. An operator is written once over a table of stages; a row binds it to one instruction set.
#pragma once

#include "backends/cpu/stages.h"
#include "kernels/entry.h"

namespace fmhc::cpu {

int32_t fit(Isa isa, const Problem& problem, const Target& target, fmhc_diag* why);

// Work memory of the operators that project or normalise: one piece for each thread that the target has.
size_t scratch_bytes(const Problem& problem, const Target& target, int64_t tokens, int32_t split_k);

int32_t launch_expand(const Stages& stages, const Launch& launch, fmhc_diag* diag);
int32_t launch_project(const Stages& stages, const Launch& launch, fmhc_diag* diag);
int32_t launch_finish(const Stages& stages, const Launch& launch, fmhc_diag* diag);
int32_t launch_pre(const Stages& stages, const Launch& launch, fmhc_diag* diag);
int32_t launch_post(const Stages& stages, const Launch& launch, fmhc_diag* diag);
int32_t launch_seam(const Stages& stages, const Launch& launch, fmhc_diag* diag);
int32_t launch_head(const Stages& stages, const Launch& launch, fmhc_diag* diag);
int32_t launch_contract(const Stages& stages, const Launch& launch, fmhc_diag* diag);

using LaunchStages = int32_t (*)(const Stages&, const Launch&, fmhc_diag*);

template <Isa kIsa, LaunchStages kLaunch>
int32_t launch_with(const Launch& launch, fmhc_diag* diag) {
  return kLaunch(stages_of(kIsa), launch, diag);
}

template <Isa kIsa>
int32_t fit_with(const Problem& problem, const Target& target, fmhc_diag* why) {
  return fit(kIsa, problem, target, why);
}

// One row of the table.
template <Isa kIsa, LaunchStages kLaunch>
constexpr KernelEntry entry(const char* name, int32_t op) {
  KernelEntry row{};
  row.name = name;
  row.backend = "cpu";
  row.op = op;
  row.device_kind = FMHC_CPU;
  row.traits = {.speed = info_of(kIsa).speed, .splits_k = op == FMHC_PROJECT};
  row.not_built = is_built(kIsa) ? nullptr : info_of(kIsa).not_built;
  row.fit = fit_with<kIsa>;
  row.launch = is_built(kIsa) ? launch_with<kIsa, kLaunch> : nullptr;
  row.scratch_bytes = scratch_bytes;
  return row;
}

}  // namespace fmhc::cpu
