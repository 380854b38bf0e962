// Is this a problem that any kernel could be asked to solve? Ranges and combinations, before any choice.
#pragma once

#include "ops/op.h"

namespace fmhc {

// Reads a caller's struct, shorter ones as zero-filled at the end, and validates it.
int32_t read_problem(const fmhc_problem* given, Problem* out, fmhc_diag* diag);

}  // namespace fmhc
