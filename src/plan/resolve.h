// Which library serves a problem, and why none of the others: a pure function of the problem, the target,
// what is available and the switches.
//
// A named backend comes first, then the rest of the chosen order. The first candidate that no switch
// excludes, that is available and that can serve the problem is chosen. Ours can serve if the planner finds a
// kernel; of the others the table in resolve.cpp says what they can do. Liger and TransformerEngine are in no
// order: they are chosen by name alone. In the order `sglang` the engine's own switches apply and ours come
// last; `auto` begins with ours.
#pragma once

#include "plan/planner.h"

namespace fmhc {

// verdicts: [count]. All of them are written unless the answer is FMHC_INVALID.
int32_t resolve(KernelTable kernels, const Problem& problem, const Target& target,
                const fmhc_switches& switches, std::span<const fmhc_candidate> candidates,
                fmhc_verdict* verdicts, fmhc_diag* diag);

}  // namespace fmhc
