#include "plan/planner.h"

#include <cinttypes>
#include <cstring>

#include "core/math.h"
#include "ops/read_struct.h"
#include "ops/slices.h"
#include "plan/split_k.h"

namespace fmhc {
namespace {

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

// The kernels that may be asked, as indices into the table.
struct Candidates {
  static constexpr int kMax = 128;
  int count = 0;
  int kernel[kMax];
};

// Why nothing can serve: of the kernels asked for, the first on the target's kind of device speaks.
struct Refusal {
  const char* kernel = nullptr;
  bool right_device = false;
  fmhc_diag why{};
};

int32_t refuse(const Problem& problem, const Hints& hints, bool named, const Refusal& refusal,
               fmhc_diag* diag) {
  if (!named) {
    return fail(diag, FMHC_INVALID, "hints.kernel is \"%s\"; no kernel has this name or prefix",
                hints.kernel);
  }
  if (refusal.kernel == nullptr) {
    return fail(diag, FMHC_UNSUPPORTED, "no kernel%s%s does %s", hints.kernel == nullptr ? "" : " of ",
                hints.kernel == nullptr ? "" : hints.kernel, find_op(problem.op)->name);
  }
  return fail(diag, FMHC_UNSUPPORTED, "%s: %s", refusal.kernel, refusal.why.text);
}

int64_t reach(KernelTable kernels, const Candidates& candidates) {
  int64_t most = 0;
  for (int index = 0; index < candidates.count; ++index) {
    most = max64(most, kernels[static_cast<size_t>(candidates.kernel[index])].traits.max_tokens);
  }
  return most;
}

// A kernel for few tokens needs company in a plan for many.
int32_t check_reach(KernelTable kernels, const Problem& problem, const Candidates& candidates,
                    fmhc_diag* diag) {
  const int64_t most = reach(kernels, candidates);
  if (problem.max_tokens <= most) return FMHC_OK;
  return fail(diag, FMHC_UNSUPPORTED, "%s: problem.max_tokens is %" PRId64 "; serves up to %" PRId64,
              kernels[static_cast<size_t>(candidates.kernel[0])].name, problem.max_tokens, most);
}

int32_t find_candidates(KernelTable kernels, const Problem& problem, const Target& target, const Hints& hints,
                        Build build, Candidates* out, fmhc_diag* diag) {
  Refusal refusal;
  bool named = hints.kernel == nullptr;
  for (int index = 0; index < static_cast<int>(kernels.size()); ++index) {
    const KernelEntry& kernel = kernels[static_cast<size_t>(index)];
    if (hints.kernel != nullptr && !matches_name(kernel.name, hints.kernel)) continue;
    named = true;
    if (kernel.op != problem.op) continue;
    fmhc_diag why{};
    if (eligible(kernel, problem, target, hints, build, &why) == FMHC_OK) {
      if (out->count == Candidates::kMax) {
        return fail(diag, FMHC_INTERNAL, "more than %d kernels for %s", Candidates::kMax,
                    find_op(problem.op)->name);
      }
      out->kernel[out->count++] = index;
      continue;
    }
    const bool right_device = kernel.device_kind == target.device_kind;
    if (refusal.kernel == nullptr || (right_device && !refusal.right_device)) {
      refusal = {kernel.name, right_device, why};
    }
  }
  if (out->count == 0) return refuse(problem, hints, named, refusal, diag);
  return check_reach(kernels, problem, *out, diag);
}

const char* arithmetic_of(const KernelEntry& kernel) {
  return kernel.traits.arithmetic != nullptr ? kernel.traits.arithmetic : kernel.name;
}

// One question put to all candidates at any token count.
struct Chooser {
  KernelTable kernels;
  const Problem& problem;
  const Target& target;
  const Hints& hints;
  Candidates candidates;

  // The fastest by the model; of equals the first in the table.
  Choice at(int64_t tokens) const {
    Choice best;
    double best_us = 0;
    for (int index = 0; index < candidates.count; ++index) {
      const KernelEntry& kernel = kernels[static_cast<size_t>(candidates.kernel[index])];
      if (tokens > kernel.traits.max_tokens) continue;
      const Choice choice = choice_of(kernels, candidates.kernel[index], problem, target, hints, tokens);
      const double us = predicted_us(kernel, problem, target, tokens, choice.split_k);
      if (best.kernel < 0 || us < best_us) {
        best = choice;
        best_us = us;
      }
    }
    return best;
  }

  // A batch-invariant token has the same bits in every plan, whatever T and max_tokens: only kernels with the
  // arithmetic of one of them stay, and that one is chosen at a fixed token count.
  void keep_one_arithmetic() {
    constexpr int64_t kReferenceTokens = 1024;
    const int64_t tokens = min64(kReferenceTokens, reach(kernels, candidates));
    const char* kept = arithmetic_of(kernels[static_cast<size_t>(at(tokens).kernel)]);
    int count = 0;
    for (int index = 0; index < candidates.count; ++index) {
      const int kernel = candidates.kernel[index];
      if (std::strcmp(arithmetic_of(kernels[static_cast<size_t>(kernel)]), kept) == 0) {
        candidates.kernel[count++] = kernel;
      }
    }
    candidates.count = count;
  }
};

// The next token count to look at: dense where kernels trade places, eight an octave above.
int64_t next_sample(int64_t tokens, int64_t most) {
  constexpr int64_t kEach = 128;
  if (tokens < kEach) return min64(tokens + 1, most);
  int64_t octave = kEach;
  while (octave <= tokens / 2) octave *= 2;
  const int64_t step = octave / 8;
  return most - tokens <= step ? most : tokens + step;
}

void add_range(KernelTable kernels, const Choice& choice, int64_t last_tokens, PlanData* plan) {
  const KernelEntry& kernel = kernels[static_cast<size_t>(choice.kernel)];
  plan->ranges[plan->num_ranges++] = {last_tokens, static_cast<uint16_t>(choice.kernel),
                                      static_cast<uint16_t>(choice.split_k), choice.variant};
  const auto grow = [](uint64_t* total, uint64_t bytes) { *total = bytes > *total ? bytes : *total; };
  if (kernel.scratch_bytes != nullptr) {
    grow(&plan->scratch_bytes,
         kernel.scratch_bytes(plan->problem, plan->target, last_tokens, choice.split_k));
  }
  if (kernel.state_bytes != nullptr)
    grow(&plan->state_bytes, kernel.state_bytes(plan->problem, plan->target));
}

// Samples the token counts and bisects to the exact place between two samples that differ.
void make_ranges(const Chooser& chooser, PlanData* plan) {
  const int64_t most = max64(plan->problem.max_tokens, 1);
  int64_t tokens = 1;
  Choice choice = chooser.at(tokens);
  while (tokens < most && plan->num_ranges < kMaxRanges - 1) {
    const int64_t sample = next_sample(tokens, most);
    if (chooser.at(sample) == choice) {
      tokens = sample;
      continue;
    }
    int64_t same = tokens;
    int64_t other = sample;
    while (other - same > 1) {
      const int64_t middle = same + (other - same) / 2;
      (chooser.at(middle) == choice ? same : other) = middle;
    }
    add_range(chooser.kernels, choice, same, plan);
    tokens = other;
    choice = chooser.at(tokens);
  }
  add_range(chooser.kernels, choice, most, plan);
  plan->packed_bytes = packed_offset(chooser.kernels, *plan, nullptr);
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

int32_t split_for(const Problem& problem, const Target& target, const Hints& hints, int64_t tokens) {
  if (hints.split_k > 0) return hints.split_k;
  const int64_t flat = flat_width(problem);
  if (hints.split_policy == FMHC_SPLIT_SGLANG) return split_sglang(tokens, flat, target.num_units);
  // On a CPU the threads share the tokens, and bits may not depend on them.
  if (target.device_kind == FMHC_CPU) return 1;
  return split_auto(tokens, flat, target.num_units, problem.batch_invariant != 0);
}

int32_t eligible(const KernelEntry& kernel, const Problem& problem, const Target& target, const Hints& hints,
                 Build build, fmhc_diag* why) {
  if (kernel.device_kind != target.device_kind) {
    return fail(why, FMHC_UNSUPPORTED, "runs on a %s, the target is a %s",
                kernel.device_kind == FMHC_CPU ? "CPU" : "CUDA device",
                target.device_kind == FMHC_CPU ? "CPU" : "CUDA device");
  }
  if (kernel.not_built != nullptr && build == Build::kThisBuild) {
    return fail(why, FMHC_UNSUPPORTED, "%s", kernel.not_built);
  }
  if (hints.split_k > 1 && !kernel.traits.splits_k) {
    return fail(why, FMHC_UNSUPPORTED, "does not split K, hints.split_k is %d", hints.split_k);
  }
  if (hints.split_policy == FMHC_SPLIT_SGLANG && !kernel.traits.splits_k) {
    return fail(why, FMHC_UNSUPPORTED, "does not split K, hints.split_policy is sglang");
  }
  return kernel.fit(problem, target, why);
}

Choice choice_of(KernelTable kernels, int kernel, const Problem& problem, const Target& target,
                 const Hints& hints, int64_t tokens) {
  const KernelEntry& row = kernels[static_cast<size_t>(kernel)];
  Choice choice{kernel, 1, 0};
  if (row.traits.splits_k) choice.split_k = split_for(problem, target, hints, tokens);
  if (row.choose_variant != nullptr) choice.variant = row.choose_variant(problem, target, tokens);
  return choice;
}

int32_t choose_kernels(KernelTable kernels, const Problem& problem, const Target& target, const Hints& hints,
                       Build build, PlanData* out, fmhc_diag* diag) {
  FMHC_TRY(check_hints(problem, hints, diag));
  Chooser chooser{kernels, problem, target, hints, {}};
  FMHC_TRY(find_candidates(kernels, problem, target, hints, build, &chooser.candidates, diag));
  if (problem.batch_invariant != 0) {
    chooser.keep_one_arithmetic();
    FMHC_TRY(check_reach(kernels, problem, chooser.candidates, diag));
  }
  *out = PlanData{};
  out->build_id = build_id();
  out->problem = problem;
  out->target = target;
  make_ranges(chooser, out);
  return FMHC_OK;
}

}  // namespace fmhc
