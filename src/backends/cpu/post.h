// The token of `post` that seam shares.
#pragma once

#include "backends/cpu/stages.h"
#include "kernels/entry.h"

namespace fmhc::cpu {

void mix_token(const Stages& stages, const Launch& launch, int64_t token);

}  // namespace fmhc::cpu
