// Kernels that exist for the planner alone: nothing launches them.
#pragma once

#include "plan/planner.h"

namespace fmhc::test {

inline Problem problem_of(int32_t op, int64_t max_tokens, int64_t hidden = 4096) {
  Problem problem{};
  problem.struct_size = sizeof problem;
  fmhc_preset("deepseek_v4", &problem, nullptr);
  problem.op = op;
  problem.streams = 4;
  problem.residual_dtype = FMHC_BF16;
  problem.projection = FMHC_CLASS_F;
  problem.align_bytes = 16;
  problem.hidden = hidden;
  problem.max_tokens = max_tokens;
  return problem;
}

inline Target named_target(const char* name, int32_t units = 0) {
  Target target{};
  fmhc_target_named(name, &target, nullptr);
  if (units > 0) target.num_units = units;
  return target;
}

inline int32_t fit_all(const Problem&, const Target&, fmhc_diag*) {
  return FMHC_OK;
}

inline int32_t fit_if_units_may_wait(const Problem& problem, const Target&, fmhc_diag* why) {
  if (problem.coresident_units >= 16) return FMHC_OK;
  return fail(why, FMHC_UNSUPPORTED, "16 CTAs wait for one another, coresident_units is %d",
              problem.coresident_units);
}

inline size_t partial_bytes(const Problem& problem, const Target&, int64_t tokens, int32_t split_k) {
  return static_cast<size_t>(tokens * split_k * (logit_count(problem) + 1) * 4);
}

inline uint32_t tile_for(const Problem&, const Target&, int64_t tokens) {
  return tokens <= 24 ? 8 : tokens <= 1000 ? 64 : 128;
}

constexpr KernelEntry row(const char* name, int32_t op, int32_t kind, Traits traits,
                          const char* not_built = nullptr) {
  return {.name = name,
          .backend = kind == FMHC_CPU ? "cpu" : "cuda",
          .op = op,
          .device_kind = kind,
          .traits = traits,
          .not_built = not_built,
          .fit = fit_all,
          .launch = nullptr};
}

// One launch that visits the streams twice against two that visit them once; a waiting kernel beats both.
inline constexpr KernelEntry kFakeKernels[] = {
    {.name = "cuda.sm90.pre.wait",
     .backend = "cuda",
     .op = FMHC_PRE,
     .device_kind = FMHC_CUDA,
     .traits = {.launches = 1, .residual_visits = 1, .speed = 0.5},
     .not_built = nullptr,
     .fit = fit_if_units_may_wait,
     .launch = nullptr},
    {.name = "cuda.sm90.pre.split",
     .backend = "cuda",
     .op = FMHC_PRE,
     .device_kind = FMHC_CUDA,
     .traits = {.launches = 2, .residual_visits = 1, .speed = 1, .splits_k = true},
     .not_built = nullptr,
     .fit = fit_all,
     .launch = nullptr,
     .scratch_bytes = partial_bytes,
     .choose_variant = tile_for},
    row("cuda.portable.pre", FMHC_PRE, FMHC_CUDA, {.launches = 1, .residual_visits = 2, .speed = 0.5}),
    row("cuda.sm100.pre", FMHC_PRE, FMHC_CUDA, {.speed = 4}, "not built (sm_100 is not in FMHC_CUDA_ARCHS)"),
    row("cpu.avx3.pre", FMHC_PRE, FMHC_CPU, {.speed = 0.5}),
    row("cpu.avx2.pre", FMHC_PRE, FMHC_CPU, {.speed = 0.25}),
    row("ref.pre", FMHC_PRE, FMHC_CPU, {.speed = 0.02, .splits_k = true}),
};

inline const char* name_of(const Choice& choice) {
  return kFakeKernels[choice.kernel].name;
}

}  // namespace fmhc::test
