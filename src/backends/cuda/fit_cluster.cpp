// What the one-launch families can do: `cluster`, and what it shares with `decode`.
#include "backends/cuda/common/math.cuh"
#include "backends/cuda/entries.h"
#include "core/dtype.h"
#include "core/status.h"

namespace fmhc::cuda {

int32_t fit_one_launch(const Problem& problem, const Target& target, fmhc_diag* why) {
  FMHC_TRY(fit_vector(problem, target, why));
  if (target.arch != 90) {
    return fail(why, FMHC_UNSUPPORTED, "target.arch is %d; built and measured for 90 alone", target.arch);
  }
  if (problem.residual_dtype != FMHC_BF16) {
    return fail(why, FMHC_UNSUPPORTED, "problem.residual_dtype is %s; made for bf16",
                dtype_name(problem.residual_dtype));
  }
  if (problem.hidden != 4096 && problem.hidden != 5120 && problem.hidden != 7168) {
    return fail(why, FMHC_UNSUPPORTED, "problem.hidden is %lld; made for 4096, 5120 and 7168",
                static_cast<long long>(problem.hidden));
  }
  if (problem.strided != 0) return fail(why, FMHC_UNSUPPORTED, "problem.strided is 1; reads packed tensors");
  if (problem.carried_pre != 0)
    return fail(why, FMHC_UNSUPPORTED, "problem.carried_pre is 1; predicts its own mix");
  if (problem.batch_invariant != 0) {
    return fail(why, FMHC_UNSUPPORTED,
                "problem.batch_invariant is 1; such a plan keeps one arithmetic for every token count");
  }
  const float eps = problem.consts.sinkhorn_eps;
  if (!(eps >= kScalingEpsLeast && eps <= kScalingEpsMost)) {
    return fail(why, FMHC_UNSUPPORTED, "problem.consts.sinkhorn_eps is %g; needs %g..%g",
                static_cast<double>(eps), static_cast<double>(kScalingEpsLeast),
                static_cast<double>(kScalingEpsMost));
  }
  return FMHC_OK;
}

int32_t fit_cluster(const Problem& problem, const Target& target, fmhc_diag* why) {
  FMHC_TRY(fit_one_launch(problem, target, why));
  if (problem.projection == FMHC_CLASS_F) {
    return fail(why, FMHC_UNSUPPORTED, "problem.projection is F; keeps 16 bits of fn (F2)");
  }
  if (problem.norm_weight_dtype == FMHC_FP32) {
    return fail(why, FMHC_UNSUPPORTED,
                "problem.norm_weight_dtype is fp32; keeps a bf16 weight in shared memory");
  }
  return FMHC_OK;
}

size_t cluster_packed_bytes(const Problem& problem, const Target&) {
  constexpr int64_t kRows = 24;  // of a site; the four of a head are padded
  return static_cast<size_t>(kRows * flat_width(problem)) * sizeof(float);
}

}  // namespace fmhc::cuda
