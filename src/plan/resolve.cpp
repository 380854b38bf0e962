#include "plan/resolve.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "plan/capability.h"

namespace fmhc {
namespace {

struct Backend {
  const char* name;
  bool ours;
  int place[2];                           // in the orders auto and sglang; kNowhere: chosen by name alone
  int32_t fmhc_switches::*engine_switch;  // of the order sglang; nullptr: none
  const char* switch_name;
};

constexpr int kNowhere = 100;

constexpr Backend kBackends[] = {
    {"cuda", true, {0, 4}, nullptr, nullptr},
    {"cpu", true, {1, 5}, nullptr, nullptr},
    {"flashinfer", false, {2, 0}, &fmhc_switches::use_flashinfer, "use_flashinfer"},
    {"tilelang", false, {3, 1}, &fmhc_switches::use_tilelang, "use_tilelang"},
    {"aiter", false, {4, 2}, &fmhc_switches::use_aiter, "use_aiter"},
    {"torch", false, {5, 3}, nullptr, nullptr},
    {"ref", true, {6, 6}, nullptr, nullptr},
    {"liger", false, {kNowhere, kNowhere}, nullptr, nullptr},
    {"transformer_engine", false, {kNowhere + 1, kNowhere + 1}, nullptr, nullptr},
};
constexpr const char* kOrders[] = {"auto", "sglang"};
constexpr const char* kAccepted =
    "cuda, cpu, ref, flashinfer, tilelang, aiter, torch, liger, transformer_engine";
constexpr int kMaxCandidates = static_cast<int>(std::size(kBackends));

const Backend* find_backend(const char* name) {
  for (const Backend& backend : kBackends) {
    if (name != nullptr && std::strcmp(name, backend.name) == 0) return &backend;
  }
  return nullptr;
}

bool is_named(const fmhc_switches& switches) {
  return switches.backend != nullptr && switches.backend[0] != '\0' &&
         std::strcmp(switches.backend, "auto") != 0;
}

struct Question {
  KernelTable kernels;
  const Problem& problem;
  const Target& target;
  const fmhc_switches& switches;
  const Backend* named;  // nullptr: by order
};

int32_t check_switches(const Target& target, const fmhc_switches& switches, fmhc_diag* diag) {
  if (switches.order != FMHC_ORDER_AUTO && switches.order != FMHC_ORDER_SGLANG) {
    return fail(diag, FMHC_INVALID, "switches.order is %d; accepted: auto (0) or sglang (1)", switches.order);
  }
  if (switches.amd != 0 && target.device_kind == FMHC_CPU) {
    return fail(diag, FMHC_INVALID, "switches.amd is %d; the target is a CPU: accepted: 0", switches.amd);
  }
  if (is_named(switches) && find_backend(switches.backend) == nullptr) {
    return fail(diag, FMHC_INVALID, "switches.backend is \"%.32s\"; accepted: auto, %s", switches.backend,
                kAccepted);
  }
  return FMHC_OK;
}

int32_t check_candidates(std::span<const fmhc_candidate> candidates, fmhc_diag* diag) {
  for (size_t index = 0; index < candidates.size(); ++index) {
    const fmhc_candidate& candidate = candidates[index];
    const Backend* backend = find_backend(candidate.name);
    if (backend == nullptr) {
      return fail(diag, FMHC_INVALID, "candidates[%zu].name is \"%.32s\"; accepted: %s", index,
                  candidate.name == nullptr ? "(null)" : candidate.name, kAccepted);
    }
    if (candidate.availability < FMHC_AVAILABLE || candidate.availability > FMHC_UNTESTED) {
      return fail(diag, FMHC_INVALID,
                  "candidates[%zu].availability is %d; accepted: 1..4 (fmhc_availability)", index,
                  candidate.availability);
    }
    for (size_t other = 0; other < index; ++other) {
      if (std::strcmp(candidates[other].name, candidate.name) == 0) {
        return fail(diag, FMHC_INVALID, "candidates[%zu] and [%zu] are both \"%s\"; accepted: each once",
                    other, index, candidate.name);
      }
    }
  }
  return FMHC_OK;
}

int place_of(const Question& question, const Backend& backend) {
  return &backend == question.named ? -1 : backend.place[question.switches.order];
}

// FMHC_INVALID marks an exclusion by a switch, so that the final text can name it.
int32_t excluded_by_switch(const Question& question, const Backend& backend, fmhc_diag* why) {
  const fmhc_switches& switches = question.switches;
  if (&backend == question.named) return FMHC_OK;
  if (switches.strict != 0 && question.named != nullptr) {
    return fail(why, FMHC_INVALID, "strict: backend %s alone was asked for", question.named->name);
  }
  if (backend.place[switches.order] >= kNowhere) {
    return fail(why, FMHC_UNSUPPORTED, "in no order: chosen by name alone");
  }
  if (switches.order == FMHC_ORDER_SGLANG && backend.engine_switch != nullptr &&
      switches.*backend.engine_switch == 0) {
    return fail(why, FMHC_INVALID, "%s is 0", backend.switch_name);
  }
  return FMHC_OK;
}

int32_t check_available(const Question& question, const fmhc_candidate& candidate, fmhc_diag* why) {
  const char* version = candidate.version != nullptr ? candidate.version : "unknown";
  const char* detail = candidate.detail != nullptr ? candidate.detail : "";
  const char* colon = detail[0] != '\0' ? ": " : "";
  switch (candidate.availability) {
    case FMHC_ABSENT:
      return fail(why, FMHC_UNSUPPORTED, "not installed%s%.150s", colon, detail);
    case FMHC_BROKEN:
      return fail(why, FMHC_UNSUPPORTED, "version %.32s is broken%s%.150s", version, colon, detail);
    case FMHC_UNTESTED:
      if (question.switches.allow_untested != 0) return FMHC_OK;
      return fail(why, FMHC_INVALID, "version %.32s was not tested and allow_untested is 0%s%.100s", version,
                  colon, detail);
    default:
      return FMHC_OK;
  }
}

int32_t check_ours(const Question& question, const Backend& backend, fmhc_diag* why) {
  if (question.switches.amd != 0) {
    return fail(why, FMHC_UNSUPPORTED, "does no %s on an AMD GPU", find_op(question.problem.op)->name);
  }
  for (const KernelEntry& kernel : question.kernels) {
    if (!matches_name(kernel.name, backend.name)) continue;
    PlanData plan;
    const Hints hints{0, FMHC_SPLIT_AUTO, backend.name};
    return choose_kernels(question.kernels, question.problem, question.target, hints, Build::kThisBuild,
                          &plan, why);
  }
  return fail(why, FMHC_UNSUPPORTED, "has no kernel in this build");
}

int32_t check_candidate(const Question& question, const fmhc_candidate& candidate, fmhc_diag* why) {
  const Backend& backend = *find_backend(candidate.name);
  FMHC_TRY(excluded_by_switch(question, backend, why));
  FMHC_TRY(check_available(question, candidate, why));
  if (backend.ours) return check_ours(question, backend, why);
  return can_serve(backend.name, question.problem, question.target, question.switches.amd != 0, why);
}

void say(fmhc_verdict* verdict, const char* text, const char* first = "", const char* second = "") {
  std::snprintf(verdict->reason, sizeof verdict->reason, "%.180s%s%.40s", text, first, second);
}

int32_t named_cannot_serve(const Question& question, std::span<const fmhc_candidate> candidates,
                           const fmhc_verdict* verdicts, fmhc_diag* diag) {
  const char* reason = "it is not among the candidates";
  for (size_t index = 0; index < candidates.size(); ++index) {
    if (find_backend(candidates[index].name) == question.named) reason = verdicts[index].reason;
  }
  return fail(diag, FMHC_UNSUPPORTED, "strict: backend %s alone was asked for, and it cannot serve %s: %s",
              question.named->name, find_op(question.problem.op)->name, reason);
}

// Names every switch that stands in the way, or all reasons where none does.
int32_t none_can_serve(const Question& question, std::span<const fmhc_candidate> candidates,
                       const fmhc_verdict* verdicts, uint32_t by_switch, fmhc_diag* diag) {
  if (question.named != nullptr && question.switches.strict != 0) {
    return named_cannot_serve(question, candidates, verdicts, diag);
  }
  char text[160];
  size_t used = 0;
  const auto add = [&](const char* join, const char* name, const char* reason) {
    const int wrote = std::snprintf(text + used, sizeof text - used, "%s%s: %s", join, name, reason);
    if (wrote > 0) used = std::min(used + static_cast<size_t>(wrote), sizeof text - 1);
  };
  text[0] = '\0';
  for (size_t index = 0; index < candidates.size(); ++index) {
    if (by_switch == 0 || (by_switch >> index & 1) != 0) {
      add(used == 0 ? "" : "; ", candidates[index].name, verdicts[index].reason);
    }
  }
  return fail(diag, FMHC_UNSUPPORTED, "none of %zu backends can serve %s in order %s%s%s", candidates.size(),
              find_op(question.problem.op)->name, kOrders[question.switches.order],
              by_switch != 0 ? "; excluded by switches: "
              : used != 0    ? "; "
                             : "",
              text);
}

}  // namespace

int32_t resolve(KernelTable kernels, const Problem& problem, const Target& target,
                const fmhc_switches& switches, std::span<const fmhc_candidate> candidates,
                fmhc_verdict* verdicts, fmhc_diag* diag) {
  FMHC_TRY(check_switches(target, switches, diag));
  FMHC_TRY(check_candidates(candidates, diag));
  const Backend* named = is_named(switches) ? find_backend(switches.backend) : nullptr;
  const Question question{kernels, problem, target, switches, named};
  bool can[kMaxCandidates] = {};
  uint32_t by_switch = 0;
  const size_t count = candidates.size();
  size_t best = count;
  const auto place = [&](size_t index) { return place_of(question, *find_backend(candidates[index].name)); };
  for (size_t index = 0; index < count; ++index) {
    fmhc_diag why{};
    const int32_t code = check_candidate(question, candidates[index], &why);
    can[index] = code == FMHC_OK;
    if (code == FMHC_INVALID) by_switch |= 1u << index;
    verdicts[index] = {};
    for (size_t other = 0; other < count; ++other)
      verdicts[index].rank += place(other) < place(index) ? 1 : 0;
    say(&verdicts[index], why.text);
    if (can[index] && (best == count || place(index) < place(best))) best = index;
  }
  if (best == count) return none_can_serve(question, candidates, verdicts, by_switch, diag);
  verdicts[best].chosen = 1;
  for (size_t index = 0; index < count; ++index) {
    if (!can[index]) continue;
    if (index != best) {
      say(&verdicts[index], "can serve; ", candidates[best].name, " comes first");
    } else if (place(best) < 0) {
      say(&verdicts[best], "named, and can serve");
    } else {
      say(&verdicts[best], "first in order ", kOrders[switches.order], " that can serve");
    }
  }
  return FMHC_OK;
}

}  // namespace fmhc
