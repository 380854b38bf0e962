// Backend `ref`: the oracle. Double accumulation, scalar loops, one file per operator, no tricks.
#pragma once

#include "kernels/entry.h"

namespace fmhc::ref {

int32_t fit(const Problem& problem, const Target& target, fmhc_diag* why);

int32_t launch_expand(const Launch& launch, fmhc_diag* diag);

}  // namespace fmhc::ref
