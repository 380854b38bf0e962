// What the kernels can do and how much memory they take; compiled with and without CUDA.
#include "backends/cuda/entries.h"

#include <cstdint>

#include "backends/cuda/geometry.h"
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

int32_t fit_finish(const Problem& problem, const Target& target, fmhc_diag* why) {
  FMHC_TRY(fit_vector(problem, target, why));
  const int64_t row = problem.hidden * dtype_bytes(problem.residual_dtype);
  if (finish_shape(1, row / kVectorBytes, target.num_units, false).index < 0) {
    return fail(why, FMHC_UNSUPPORTED, "problem.hidden is %lld; a row of %lld bytes is too long for one CTA",
                static_cast<long long>(problem.hidden), static_cast<long long>(row));
  }
  if (problem.max_tokens > INT32_MAX) {
    return fail(why, FMHC_UNSUPPORTED, "problem.max_tokens is %lld; a grid has at most %d CTAs",
                static_cast<long long>(problem.max_tokens), INT32_MAX);
  }
  return FMHC_OK;
}

int32_t fit_tensor_core(const Problem& problem, const Target& target, fmhc_diag* why) {
  FMHC_TRY(fit_finish(problem, target, why));
  if (problem.hidden % 64 != 0) {
    return fail(why, FMHC_UNSUPPORTED, "problem.hidden is %lld; needs a multiple of 64",
                static_cast<long long>(problem.hidden));
  }
  return FMHC_OK;
}

int32_t fit_seam(const Problem& problem, const Target& target, fmhc_diag* why) {
  FMHC_TRY(fit_tensor_core(problem, target, why));
  if (problem.residual_dtype != FMHC_BF16) {
    return fail(why, FMHC_UNSUPPORTED, "problem.residual_dtype is %s; made for bf16",
                dtype_name(problem.residual_dtype));
  }
  return FMHC_OK;
}

int32_t fit_head_cluster(const Problem& problem, const Target& target, fmhc_diag* why) {
  FMHC_TRY(fit_vector(problem, target, why));
  if (target.arch < 90) {
    return fail(why, FMHC_UNSUPPORTED, "target.arch is %d; clusters need 90 or later", target.arch);
  }
  if (problem.residual_dtype != FMHC_BF16) {
    return fail(why, FMHC_UNSUPPORTED, "problem.residual_dtype is %s; made for bf16",
                dtype_name(problem.residual_dtype));
  }
  if (problem.norm != FMHC_NORM_NONE) {
    return fail(why, FMHC_UNSUPPORTED, "problem.norm is %d; has none", problem.norm);
  }
  const HeadShape shape = head_shape(problem.hidden, 1, target.num_units);
  if (shape.cluster == 0 || shape.cluster > target.num_units) {
    return fail(why, FMHC_UNSUPPORTED,
                "problem.hidden is %lld; needs a multiple of 64 for each of 1, 2, 4 or 8 CTAs with at most "
                "1024 columns",
                static_cast<long long>(problem.hidden));
  }
  return FMHC_OK;
}

size_t packed_bytes(const Problem& problem, const Target&) {
  const int32_t tiles = tiles_of(problem.op == FMHC_HEAD ? ProjectKind::kHead : ProjectKind::kProject);
  return static_cast<size_t>(flat_width(problem) * 8 * tiles * pieces_of(problem.projection)) *
         sizeof(uint16_t);
}

size_t partials_bytes(const Problem& problem, const Target&, int64_t tokens, int32_t split_k) {
  return static_cast<size_t>(tokens * split_k * partial_row(logit_count(problem))) * sizeof(float);
}

}  // namespace fmhc::cuda
