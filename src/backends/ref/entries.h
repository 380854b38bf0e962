// Backend `ref`: the oracle. Double accumulation, scalar loops, one file per operator, no tricks.
#pragma once

#include "kernels/entry.h"

namespace fmhc::ref {

int32_t fit(const Problem& problem, const Target& target, fmhc_diag* why);

int32_t launch_expand(const Launch& launch, fmhc_diag* diag);
int32_t launch_project(const Launch& launch, fmhc_diag* diag);
int32_t launch_finish(const Launch& launch, fmhc_diag* diag);
int32_t launch_pre(const Launch& launch, fmhc_diag* diag);
int32_t launch_post(const Launch& launch, fmhc_diag* diag);
int32_t launch_seam(const Launch& launch, fmhc_diag* diag);
int32_t launch_head(const Launch& launch, fmhc_diag* diag);
int32_t launch_contract(const Launch& launch, fmhc_diag* diag);

}  // namespace fmhc::ref
