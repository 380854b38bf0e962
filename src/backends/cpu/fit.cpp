#include "backends/cpu/entries.h"
#include "core/dtype.h"
#include "core/status.h"

namespace fmhc::cpu {

// Any H, streams and strides. Class F serves every class of projection, and a token's bits never depend on
// the others, so neither is asked.
int32_t fit(Isa isa, const Problem& problem, const Target& target, fmhc_diag* why) {
  const IsaInfo info = info_of(isa);
  if ((target.arch & info.feature) == 0) {
    return fail(why, FMHC_UNSUPPORTED, "needs %s (feature bit %d), target.arch is %d", info.text,
                info.feature, target.arch);
  }
  if (problem.residual_dtype == FMHC_FP64) {
    return fail(why, FMHC_UNSUPPORTED, "problem.residual_dtype is %s; accepted: bf16, fp16, fp32",
                dtype_name(problem.residual_dtype));
  }
  return FMHC_OK;
}

}  // namespace fmhc::cpu
