// Do these tensors fit the problem of a plan? Everything is compared before anything is touched; every
// message names the tensor, what was given and what would be accepted.
#pragma once

#include "ops/op.h"

namespace fmhc {

// What the plan adds to the problem.
struct PlanNeeds {
  size_t scratch_bytes = 0;
  size_t state_bytes = 0;
  size_t packed_bytes = 0;
  Weights weights = Weights::kRaw;
  int32_t device_kind = FMHC_CPU;
};

// The number of tokens, from the first tensor that has them.
int32_t read_tokens(const Problem& problem, const fmhc_args& args, int64_t* tokens, fmhc_diag* diag);

// `splits`: slices of K that the plan uses for this many tokens; finish reads its own from dot_mix_in.
int32_t check_args(const Problem& problem, const PlanNeeds& needs, int64_t tokens, int32_t splits,
                   const fmhc_args& args, fmhc_diag* diag);

// fn alone, for fmhc_prepare.
int32_t check_weight(const Problem& problem, const fmhc_in& fn, fmhc_diag* diag);

}  // namespace fmhc
