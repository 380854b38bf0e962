// What the kernels can do and how much memory they take; compiled with and without CUDA.
#include "backends/cuda/entries.h"
#include "backends/cuda/layout.h"
#include "core/dtype.h"
#include "core/status.h"

namespace fmhc::cuda {

bool is_vector(const Problem& problem) {
  return problem.align_bytes >= kVectorBytes &&
         problem.hidden * dtype_bytes(problem.residual_dtype) % kVectorBytes == 0;
}

int32_t fit_generic(const Problem& problem, const Target& target, fmhc_diag* why) {
  if (target.arch < 80) {
    return fail(why, FMHC_UNSUPPORTED, "target.arch is %d; needs 80 (Ampere) or later", target.arch);
  }
  if (problem.residual_dtype == FMHC_FP64) {
    return fail(why, FMHC_UNSUPPORTED, "problem.residual_dtype is fp64; stores bf16, fp16 and fp32");
  }
  return FMHC_OK;
}

int32_t fit_vector(const Problem& problem, const Target& target, fmhc_diag* why) {
  FMHC_TRY(fit_generic(problem, target, why));
  if (problem.streams != 4) {
    return fail(why, FMHC_UNSUPPORTED, "problem.streams is %d; made for 4", problem.streams);
  }
  if (!is_vector(problem)) {
    return fail(why, FMHC_UNSUPPORTED,
                "problem.align_bytes is %d and a row has %lld bytes; needs both in multiples of 16",
                problem.align_bytes,
                static_cast<long long>(problem.hidden * dtype_bytes(problem.residual_dtype)));
  }
  return FMHC_OK;
}

size_t partials_bytes(const Problem& problem, const Target&, int64_t tokens, int32_t split_k) {
  return static_cast<size_t>(tokens * split_k * partial_row(logit_count(problem))) * sizeof(float);
}

}  // namespace fmhc::cuda
