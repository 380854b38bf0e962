// Why a plan is what it is, as one JSON object. Written for a build that lacks a backend too: rows that are
// not built are planned with, and `runnable` says that fmhc_plan_make would refuse.
//
//   schema      1
//   problem     the fields of fmhc_problem, enumerations by name
//   target      device_kind, device_index, arch, num_units, smem_bytes, cache_bytes
//   hints       kernel (null: any), split_k (0: by policy), split_policy
//   runnable    true if fmhc_plan_make succeeds;  reason: null, or the text of its refusal
//   tokens      max_tokens; the three next are answers for that many
//   kernel, backend, predicted_us   null when nothing can serve;  split_k: then what the policy alone says
//   scratch_bytes, state_bytes, packed_bytes
//   ranges      [{from, to, kernel, backend, split_k, variant, predicted_us at `to`}]
//   candidates  every kernel of the operator, in table order: {kernel, backend, not_built (null, or why),
//   eligible,
//               and reason, or tokens (max_tokens, or fewer where the kernel serves no more), split_k and
//               predicted_us for that many}
#pragma once

#include "plan/planner.h"

namespace fmhc {

// `size` gets the bytes of the whole text, NUL included; above `capacity` the buffer holds an empty string.
// Fails where the problem or the hints are invalid.
int32_t explain(KernelTable kernels, const Problem& problem, const Target& target, const Hints& hints,
                char* json, size_t capacity, size_t* size, fmhc_diag* diag);

}  // namespace fmhc
