// What machine is this: one query, a plain value, no cache.
#pragma once

#include <span>

#include "core/status.h"

namespace fmhc {

int32_t query_cpu(int32_t index, fmhc_target* out, fmhc_diag* diag);
int32_t query_cuda(int32_t index, fmhc_target* out,
                   fmhc_diag* diag);  // FMHC_UNSUPPORTED where it is not built

// Machines that can be planned for without being there.
struct NamedTarget {
  const char* name;
  fmhc_target target;
};
std::span<const NamedTarget> named_targets();

// Reads a caller's struct and checks its ranges.
int32_t read_target(const fmhc_target* given, fmhc_target* out, fmhc_diag* diag);

}  // namespace fmhc
