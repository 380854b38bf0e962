// Random inputs of a call: three families of residuals, logits of a chosen spread, mixes without symmetry.
#pragma once

#include <random>

#include "check/tensors.h"

namespace fmhc::ops_test {

enum class Family { kNormal, kHotChannels, kLogNormal };
inline constexpr Family kFamilies[] = {Family::kNormal, Family::kHotChannels, Family::kLogNormal};

// DeepSeek-V4's constants, packed, class F; the residual is bf16.
fmhc_problem make_problem(int32_t op, int32_t streams, int64_t hidden, int64_t tokens);

// Fills every input of the call, rounded to its storage. `spread` is the standard deviation of the logits.
void fill_inputs(Family family, double spread, bool equal_streams, std::mt19937_64* random,
                 check::Case* call);

}  // namespace fmhc::ops_test
