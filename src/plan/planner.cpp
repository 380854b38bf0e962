#include "plan/planner.h"

#include <cinttypes>
#include <cstring>

#include "core/math.h"
#include "ops/read_struct.h"
#include "ops/slices.h"
#include "plan/split_k.h"

namespace fmhc {
namespace {

int32_t split_for(const Problem& problem, const Target& target, const Hints& hints, const KernelEntry& kernel,
                  int64_t tokens) {
  if (!kernel.traits.splits_k) return 1;
  if (hints.split_k > 0) return hints.split_k;
  const int64_t flat = flat_width(problem);
  if (hints.split_policy == FMHC_SPLIT_SGLANG) return split_sglang(tokens, flat, target.num_units);
  // On a CPU the threads share the tokens, and bits may not depend on them.
  if (target.device_kind == FMHC_CPU) return 1;
  return split_auto(tokens, flat, target.num_units, problem.batch_invariant != 0);
}

int32_t check_hints(const Problem& problem, const Hints& hints, fmhc_diag* diag) {
  const int64_t most = ceil_div(flat_width(problem), kSplitBlock);
  if (hints.split_k < 0 || hints.split_k > most || hints.split_k > UINT16_MAX) {
    return fail(diag, FMHC_INVALID,
                "hints.split_k is %d; accepted: 0 or 1..%" PRId64 " (64-wide blocks of K)", hints.split_k,
                min64(most, UINT16_MAX));
  }
  if (hints.split_policy < FMHC_SPLIT_AUTO || hints.split_policy > FMHC_SPLIT_SGLANG) {
    return fail(diag, FMHC_INVALID, "hints.split_policy is %d; accepted: auto (0) or sglang (1)",
                hints.split_policy);
  }
  if (hints.split_policy != FMHC_SPLIT_AUTO && hints.split_k != 0) {
    return fail(diag, FMHC_INVALID, "hints.split_k is %d beside a split_policy; accepted: one of the two",
                hints.split_k);
  }
  if (hints.split_policy == FMHC_SPLIT_SGLANG && problem.batch_invariant != 0) {
    return fail(
        diag, FMHC_INVALID,
        "hints.split_policy sglang follows the token count; a batch_invariant problem needs auto (0)");
  }
  return FMHC_OK;
}

// FMHC_OK if this kernel can serve the problem with these hints; the reason otherwise.
int32_t eligible(const KernelEntry& kernel, const Problem& problem, const Target& target, const Hints& hints,
                 fmhc_diag* why) {
  if (kernel.device_kind != target.device_kind) {
    return fail(why, FMHC_UNSUPPORTED, "runs on a %s, the target is a %s",
                kernel.device_kind == FMHC_CPU ? "CPU" : "CUDA device",
                target.device_kind == FMHC_CPU ? "CPU" : "CUDA device");
  }
  if (kernel.not_built != nullptr) return fail(why, FMHC_UNSUPPORTED, "%s", kernel.not_built);
  if (hints.split_k > 1 && !kernel.traits.splits_k) {
    return fail(why, FMHC_UNSUPPORTED, "does not split K, hints.split_k is %d", hints.split_k);
  }
  return kernel.fit(problem, target, why);
}

struct Choice {
  int kernel = -1;
  int32_t split_k = 1;
  uint32_t variant = 0;

  bool operator==(const Choice&) const = default;
};

// The kernels that may be asked, as indices into all_kernels().
struct Candidates {
  static constexpr int kMax = 64;
  int count = 0;
  int kernel[kMax];
};

int32_t find_candidates(const Problem& problem, const Target& target, const Hints& hints, Candidates* out,
                        fmhc_diag* diag) {
  const std::span<const KernelEntry> kernels = all_kernels();
  const char* nearest = nullptr;
  fmhc_diag nearest_reason{};
  bool named = hints.kernel == nullptr;
  for (int index = 0; index < static_cast<int>(kernels.size()); ++index) {
    const KernelEntry& kernel = kernels[static_cast<size_t>(index)];
    if (hints.kernel != nullptr && !matches_name(kernel.name, hints.kernel)) continue;
    named = true;
    if (kernel.op != problem.op) continue;
    fmhc_diag why{};
    if (eligible(kernel, problem, target, hints, &why) == FMHC_OK) {
      if (out->count < Candidates::kMax) out->kernel[out->count++] = index;
    } else if (nearest == nullptr) {
      nearest = kernel.name;
      nearest_reason = why;
    }
  }
  if (out->count > 0) return FMHC_OK;
  if (!named)
    return fail(diag, FMHC_INVALID, "hints.kernel is \"%s\"; no kernel has this name or prefix",
                hints.kernel);
  if (nearest == nullptr) {
    return fail(diag, FMHC_UNSUPPORTED, "no kernel%s%s does %s", hints.kernel == nullptr ? "" : " of ",
                hints.kernel == nullptr ? "" : hints.kernel, find_op(problem.op)->name);
  }
  return fail(diag, FMHC_UNSUPPORTED, "%s: %s", nearest, nearest_reason.text);
}

Choice best_choice(const Problem& problem, const Target& target, const Hints& hints,
                   const Candidates& candidates, int64_t tokens) {
  Choice best;
  double best_us = 0;
  for (int index = 0; index < candidates.count; ++index) {
    const KernelEntry& kernel = all_kernels()[static_cast<size_t>(candidates.kernel[index])];
    Choice choice{candidates.kernel[index], split_for(problem, target, hints, kernel, tokens), 0};
    if (kernel.choose_variant != nullptr) choice.variant = kernel.choose_variant(problem, target, tokens);
    const double us = predicted_us(kernel, problem, target, tokens, choice.split_k);
    if (best.kernel < 0 || us < best_us) {
      best = choice;
      best_us = us;
    }
  }
  return best;
}

void add_range(const Choice& choice, int64_t last_tokens, PlanData* plan) {
  const KernelEntry& kernel = all_kernels()[static_cast<size_t>(choice.kernel)];
  plan->ranges[plan->num_ranges++] = {last_tokens, static_cast<uint16_t>(choice.kernel),
                                      static_cast<uint16_t>(choice.split_k), choice.variant};
  const auto grow = [](uint64_t* total, uint64_t bytes) { *total = bytes > *total ? bytes : *total; };
  if (kernel.scratch_bytes != nullptr) {
    grow(&plan->scratch_bytes,
         kernel.scratch_bytes(plan->problem, plan->target, last_tokens, choice.split_k));
  }
  if (kernel.state_bytes != nullptr)
    grow(&plan->state_bytes, kernel.state_bytes(plan->problem, plan->target));
  if (kernel.packed_bytes != nullptr)
    grow(&plan->packed_bytes, kernel.packed_bytes(plan->problem, plan->target));
}

}  // namespace

bool matches_name(const char* name, const char* prefix) {
  const size_t length = std::strlen(prefix);
  return std::strncmp(name, prefix, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

int32_t read_hints(const fmhc_hints* given, Hints* out, fmhc_diag* diag) {
  *out = Hints{};
  if (given == nullptr) return FMHC_OK;
  fmhc_hints hints{};
  FMHC_TRY(read_struct(given, "hints", &hints, diag));
  *out = {hints.split_k, hints.split_policy, hints.kernel};
  if (out->kernel != nullptr && out->kernel[0] == '\0') out->kernel = nullptr;
  return FMHC_OK;
}

int32_t choose_kernels(const Problem& problem, const Target& target, const Hints& hints, PlanData* out,
                       fmhc_diag* diag) {
  FMHC_TRY(check_hints(problem, hints, diag));
  Candidates candidates;
  FMHC_TRY(find_candidates(problem, target, hints, &candidates, diag));
  *out = PlanData{};
  out->build_id = build_id();
  out->problem = problem;
  out->target = target;
  const int64_t most = max64(problem.max_tokens, 1);
  const auto choice_at = [&](int64_t tokens) {
    return best_choice(problem, target, hints, candidates, tokens);
  };
  for (int64_t first = 1; first <= most;) {
    const Choice choice = choice_at(first);
    // Gallop to the end of the range, then bisect: choices change at few places.
    int64_t last = first;
    int64_t step = 1;
    while (step <= most - last && choice_at(last + step) == choice) {
      last += step;
      step *= 2;
    }
    for (; step > 0; step /= 2) {
      while (step <= most - last && choice_at(last + step) == choice) last += step;
    }
    if (out->num_ranges == kMaxRanges - 1) last = most;
    add_range(choice, last, out);
    if (last == most) break;
    first = last + 1;
  }
  return FMHC_OK;
}

}  // namespace fmhc
