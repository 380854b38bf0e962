// Stands in for probe_cuda.cpp in a build without CUDA.
#include "device/target.h"

namespace fmhc {

int32_t query_cuda(int32_t, fmhc_target*, fmhc_diag* diag) {
  return fail(diag, FMHC_UNSUPPORTED, "this build has no CUDA backend (FMHC_CUDA was OFF)");
}

}  // namespace fmhc
