// The C ABI: null checks, the chain read -> plan -> launch, translation. No logic of its own.
#include <cinttypes>
#include <cstring>

#include "core/counters.h"
#include "core/math.h"
#include "device/target.h"
#include "ops/check_args.h"
#include "ops/check_problem.h"
#include "ops/read_struct.h"
#include "plan/explain.h"
#include "plan/planner.h"
#include "plan/resolve.h"

namespace fmhc {
namespace {

struct Question {
  Problem problem;
  Target target;
  Hints hints;
};

int32_t read_question(const fmhc_problem* problem, const fmhc_target* target, const fmhc_hints* hints,
                      Question* out, fmhc_diag* diag) {
  FMHC_TRY(read_problem(problem, &out->problem, diag));
  FMHC_TRY(read_target(target, &out->target, diag));
  return read_hints(hints, &out->hints, diag);
}

const KernelEntry& kernel_of(const Range& range) {
  return all_kernels()[range.kernel];
}

int32_t prepare_kernels(const PlanData& plan, fmhc_diag* diag) {
  for (int index = 0; index < plan.num_ranges; ++index) {
    const KernelEntry& kernel = kernel_of(plan.ranges[index]);
    if (kernel.prepare != nullptr) FMHC_TRY(kernel.prepare(plan.problem, plan.target, diag));
  }
  return FMHC_OK;
}

// The first kernel of the plan that has this entry point.
template <typename Entry>
const KernelEntry* first_with(const PlanData& plan, Entry KernelEntry::*entry) {
  for (int index = 0; index < plan.num_ranges; ++index) {
    const KernelEntry& kernel = kernel_of(plan.ranges[index]);
    if (kernel.*entry != nullptr) return &kernel;
  }
  return nullptr;
}

}  // namespace
}  // namespace fmhc

using namespace fmhc;

int32_t fmhc_plan_make(const fmhc_problem* problem, const fmhc_target* target, const fmhc_hints* hints,
                       fmhc_plan* out, fmhc_diag* diag) {
  if (out == nullptr) return fail(diag, FMHC_INVALID, "out is NULL");
  Question question;
  FMHC_TRY(read_question(problem, target, hints, &question, diag));
  PlanData plan;
  FMHC_TRY(choose_kernels(all_kernels(), question.problem, question.target, question.hints, Build::kThisBuild,
                          &plan, diag));
  FMHC_TRY(prepare_kernels(plan, diag));
  *out = {};
  out->struct_size = sizeof *out;
  out->abi = FMHC_ABI;
  std::memcpy(out->opaque, &plan, sizeof plan);
  count(Counter::kPlans);
  return FMHC_OK;
}

int32_t fmhc_supported(const fmhc_problem* problem, const fmhc_target* target, const fmhc_hints* hints,
                       fmhc_diag* diag) {
  Question question;
  FMHC_TRY(read_question(problem, target, hints, &question, diag));
  PlanData plan;
  return choose_kernels(all_kernels(), question.problem, question.target, question.hints, Build::kThisBuild,
                        &plan, diag);
}

int32_t fmhc_plan_explain(const fmhc_problem* problem, const fmhc_target* target, const fmhc_hints* hints,
                          char* json, size_t capacity, size_t* needed, fmhc_diag* diag) {
  if (json == nullptr && capacity != 0)
    return fail(diag, FMHC_INVALID, "json is NULL; capacity is %zu", capacity);
  Question question;
  FMHC_TRY(read_question(problem, target, hints, &question, diag));
  size_t size = 0;
  FMHC_TRY(
      explain(all_kernels(), question.problem, question.target, question.hints, json, capacity, &size, diag));
  if (needed != nullptr) *needed = size;
  if (json != nullptr && size > capacity) {
    return fail(diag, FMHC_RESOURCE, "capacity is %zu; the text takes %zu bytes", capacity, size);
  }
  return FMHC_OK;
}

size_t fmhc_plan_scratch(const fmhc_plan* plan) {
  PlanData data;
  return open_plan(plan, &data, nullptr) == FMHC_OK ? data.scratch_bytes : 0;
}

size_t fmhc_plan_state(const fmhc_plan* plan) {
  PlanData data;
  return open_plan(plan, &data, nullptr) == FMHC_OK ? data.state_bytes : 0;
}

size_t fmhc_plan_packed(const fmhc_plan* plan) {
  PlanData data;
  return open_plan(plan, &data, nullptr) == FMHC_OK ? data.packed_bytes : 0;
}

int32_t fmhc_plan_split_k(const fmhc_plan* plan, int64_t tokens) {
  PlanData data;
  if (open_plan(plan, &data, nullptr) != FMHC_OK || tokens < 0 || tokens > data.problem.max_tokens) return 0;
  return data.range_for(tokens).split_k;
}

const char* fmhc_plan_kernel(const fmhc_plan* plan, int64_t tokens) {
  PlanData data;
  if (open_plan(plan, &data, nullptr) != FMHC_OK || tokens < 0 || tokens > data.problem.max_tokens)
    return nullptr;
  return kernel_of(data.range_for(tokens)).name;
}

int32_t fmhc_state_init(const fmhc_plan* plan, void* state, size_t bytes, void* stream, fmhc_diag* diag) {
  PlanData data;
  FMHC_TRY(open_plan(plan, &data, diag));
  if (data.state_bytes == 0) return FMHC_OK;
  if (state == nullptr || bytes < data.state_bytes) {
    return fail(diag, FMHC_INVALID, "state is %p with %zu bytes; expected %" PRIu64 " bytes", state, bytes,
                data.state_bytes);
  }
  const KernelEntry* kernel = first_with(data, &KernelEntry::init_state);
  if (kernel == nullptr)
    return fail(diag, FMHC_INTERNAL, "the plan has state and no kernel to initialise it");
  return kernel->init_state(data.problem, data.target, state, stream, diag);
}

int32_t fmhc_prepare(const fmhc_plan* plan, const fmhc_in* fn, void* packed, size_t bytes, void* stream,
                     fmhc_diag* diag) {
  PlanData data;
  FMHC_TRY(open_plan(plan, &data, diag));
  if (data.packed_bytes == 0) {
    return fail(diag, FMHC_INVALID,
                "this plan reads fn as it is (fmhc_plan_packed is 0); nothing to prepare");
  }
  if (fn == nullptr || fn->data == nullptr) return fail(diag, FMHC_INVALID, "fn is NULL");
  if (packed == nullptr || bytes < data.packed_bytes) {
    return fail(diag, FMHC_INVALID, "packed is %p with %zu bytes; expected %" PRIu64 " bytes", packed, bytes,
                data.packed_bytes);
  }
  FMHC_TRY(check_weight(data.problem, *fn, diag));
  for (int index = 0; index < data.num_ranges; ++index) {
    const KernelEntry& kernel = kernel_of(data.ranges[index]);
    if (!first_to_pack(all_kernels(), data, index)) continue;
    auto* section = static_cast<unsigned char*>(packed) + packed_offset(all_kernels(), data, kernel.pack);
    FMHC_TRY(kernel.pack(data.problem, data.target, *fn, section, stream, diag));
  }
  count(Counter::kPrepares);
  return FMHC_OK;
}

int32_t fmhc_run(const fmhc_plan* plan, const fmhc_args* given, fmhc_diag* diag) {
  PlanData data;
  FMHC_TRY(open_plan(plan, &data, diag));
  fmhc_args args;
  FMHC_TRY(read_struct(given, "args", &args, diag));
  int64_t tokens = 0;
  FMHC_TRY(read_tokens(data.problem, args, &tokens, diag));
  const Range& range = data.range_for(tokens);
  const KernelEntry& kernel = kernel_of(range);
  const Weights weights = data.packed_bytes == 0           ? Weights::kRaw
                          : kernel.packed_bytes != nullptr ? Weights::kPacked
                                                           : Weights::kRawOfPacking;
  const PlanNeeds needs{data.scratch_bytes, data.state_bytes, data.packed_bytes, weights,
                        data.target.device_kind};
  FMHC_TRY(check_args(data.problem, needs, tokens, range.split_k, args, diag));
  count(Counter::kRuns);
  if (tokens == 0) return FMHC_OK;
  if (weights == Weights::kPacked) {
    args.fn_packed.data = static_cast<const unsigned char*>(args.fn_packed.data) +
                          packed_offset(all_kernels(), data, kernel.pack);
  }
  const int32_t splits =
      data.problem.op == FMHC_FINISH ? static_cast<int32_t>(args.dot_mix_in.shape[0]) : range.split_k;
  count(Counter::kLaunches, static_cast<uint64_t>(kernel.traits.launches));
  return kernel.launch({data.problem, data.target, args, tokens, splits, range.variant}, diag);
}

int32_t fmhc_target_query(int32_t device_kind, int32_t device_index, fmhc_target* out, fmhc_diag* diag) {
  if (out == nullptr) return fail(diag, FMHC_INVALID, "out is NULL");
  switch (device_kind) {
    case FMHC_CPU:
      return query_cpu(device_index, out, diag);
    case FMHC_CUDA:
      return query_cuda(device_index, out, diag);
    default:
      return fail(diag, FMHC_INVALID, "device_kind is %d; accepted: CPU (1) or CUDA (2)", device_kind);
  }
}

const char* fmhc_kernel_name(int32_t index) {
  const std::span<const KernelEntry> kernels = all_kernels();
  return index >= 0 && static_cast<size_t>(index) < kernels.size() ? kernels[static_cast<size_t>(index)].name
                                                                   : nullptr;
}

int32_t fmhc_counters(fmhc_counters_t* out) {
  if (out == nullptr) return FMHC_INVALID;
  read_counters(out);
  return FMHC_OK;
}

int32_t fmhc_resolve(const fmhc_problem* problem, const fmhc_target* target, const fmhc_switches* switches,
                     const fmhc_candidate* candidates, int32_t count, fmhc_verdict* verdicts,
                     fmhc_diag* diag) {
  Question question;
  FMHC_TRY(read_question(problem, target, nullptr, &question, diag));
  fmhc_switches given{};
  FMHC_TRY(read_struct(switches, "switches", &given, diag));
  if (count < 0) return fail(diag, FMHC_INVALID, "count is %d; accepted: >= 0", count);
  if (count > 0 && (candidates == nullptr || verdicts == nullptr)) {
    return fail(diag, FMHC_INVALID, "%s is NULL; count is %d",
                candidates == nullptr ? "candidates" : "verdicts", count);
  }
  // An array has one element size: that of the caller's header.
  for (int32_t index = 0; index < count; ++index) {
    if (candidates[index].struct_size != sizeof(fmhc_candidate)) {
      return fail(diag, FMHC_INVALID, "candidates[%d].struct_size is %u; accepted: %zu", index,
                  candidates[index].struct_size, sizeof(fmhc_candidate));
    }
  }
  return resolve(all_kernels(), question.problem, question.target, given,
                 {candidates, static_cast<size_t>(count)}, verdicts, diag);
}
