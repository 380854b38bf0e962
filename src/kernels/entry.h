// A kernel as the planner sees it: a row of a table. `fit` is the only statement of what a kernel can do; the
// planner, the support query and the launch path all use it. Rows exist also where their backend is not
// built: then `launch` is null and the reason reads "not built".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/op.h"

namespace fmhc {

using Target = fmhc_target;

// One call, validated: `tokens` > 0, every tensor as the OpSpec says, memory large enough.
struct Launch {
  const Problem& problem;
  const Target& target;
  const fmhc_args& args;
  int64_t tokens;
  int32_t split_k;   // slices of K (finish: partials given)
  uint32_t variant;  // the kernel's own encoding of what `choose_variant` returned
};

struct Traits {
  int launches = 1;                // device launches of one run
  double residual_visits = 1;      // how often the streams cross the memory bus
  double speed = 1;                // of the arithmetic, relative to the backend's peak
  int64_t max_tokens = INT64_MAX;  // serves token counts up to this
  bool splits_k = false;           // honours split_k > 1
  // Kernels of one name here give equal bits when the problem is batch_invariant; nullptr: its own.
  const char* arithmetic = nullptr;
};

struct KernelEntry {
  const char* name;     // "cpu.avx3.pre"; the last dotted part of a family is the operator or a variant of it
  const char* backend;  // "cpu"
  int32_t op;
  int32_t device_kind;
  Traits traits;
  const char* not_built;  // nullptr, or why `launch` is missing in this build

  // FMHC_OK, or FMHC_UNSUPPORTED with the reason in `why`.
  int32_t (*fit)(const Problem& problem, const Target& target, fmhc_diag* why);
  int32_t (*launch)(const Launch& launch, fmhc_diag* diag);

  // Optional; null means none.
  size_t (*scratch_bytes)(const Problem& problem, const Target& target, int64_t tokens,
                          int32_t split_k) = nullptr;
  size_t (*state_bytes)(const Problem& problem, const Target& target) = nullptr;
  size_t (*packed_bytes)(const Problem& problem, const Target& target) = nullptr;
  uint32_t (*choose_variant)(const Problem& problem, const Target& target, int64_t tokens) = nullptr;
  int32_t (*prepare)(const Problem& problem, const Target& target, fmhc_diag* diag) = nullptr;
  int32_t (*init_state)(const Problem& problem, const Target& target, void* state, void* stream,
                        fmhc_diag* diag) = nullptr;
  int32_t (*pack)(const Problem& problem, const Target& target, const fmhc_in& fn, void* packed, void* stream,
                  fmhc_diag* diag) = nullptr;
};

// Every kernel of the build in order of preference, the reference last. Defined by backends/all.cpp alone.
std::span<const KernelEntry> all_kernels();

}  // namespace fmhc
