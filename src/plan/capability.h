// What the kernel libraries of others can do, as data. A row is one way of serving some operators; a library
// can have several. Values are those that the libraries check or document, as of the versions in
// capability.cpp.
#pragma once

#include "core/status.h"
#include "kernels/entry.h"

namespace fmhc {

enum Device : uint32_t { kOnCpu = 1, kOnCuda = 2, kOnAmd = 4 };

enum class Eps : uint8_t { kAny, kAboveZero, kNoneInSinkhorn };

struct Capability {
  const char* backend;
  uint32_t ops;  // bits of fmhc_op
  uint32_t devices;
  int32_t arch_low = 80, arch_high = INT32_MAX;  // of a CUDA device
  uint32_t dtypes = 1u << FMHC_BF16;             // bits of fmhc_dtype
  int32_t streams_low = 4, streams_high = 4;
  int64_t hidden_multiple = 1;
  int64_t flat[2] = {0, 0};               // K must be one of these; 0: any
  uint32_t classes = 0;                   // bits of fmhc_projection that its products satisfy
  uint32_t norms = 1u << FMHC_NORM_NONE;  // bits of fmhc_norm
  Eps eps = Eps::kAny;
  bool carried_pre = false;
  bool batch_invariant = false;
};

// FMHC_OK if some row of the backend can serve; else the reason of the row that came closest.
int32_t can_serve(const char* backend, const Problem& problem, const Target& target, bool amd,
                  fmhc_diag* why);

// "CPU", "CUDA device" or "AMD GPU".
const char* device_name(const Target& target, bool amd);

}  // namespace fmhc
