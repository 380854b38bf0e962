#include "plan/explain.h"

#include "core/dtype.h"
#include "core/math.h"
#include "plan/json_writer.h"

namespace fmhc {
namespace {

template <size_t kCount>
const char* name_at(const char* const (&names)[kCount], int32_t index) {
  return index >= 0 && static_cast<size_t>(index) < kCount ? names[index] : "unknown";
}

constexpr const char* kClasses[] = {"unknown", "F", "F2", "R"};
constexpr const char* kNorms[] = {"none", "engine", "unfused"};
constexpr const char* kQuants[] = {"none", "e4m3_128", "mxfp8_32"};
constexpr const char* kPolicies[] = {"auto", "sglang"};

void write_problem(const Problem& problem, JsonWriter& json) {
  json.key("problem").begin_object();
  json.key("op").text(find_op(problem.op)->name);
  json.key("streams").integer(problem.streams);
  json.key("hidden").integer(problem.hidden);
  json.key("max_tokens").integer(problem.max_tokens);
  json.key("residual_dtype").text(dtype_name(problem.residual_dtype));
  json.key("projection").text(name_at(kClasses, problem.projection));
  json.key("norm").text(name_at(kNorms, problem.norm));
  json.key("norm_weight_dtype")
      .text(problem.norm_weight_dtype == 0 ? nullptr : dtype_name(problem.norm_weight_dtype));
  json.key("quant").text(name_at(kQuants, problem.quant));
  json.key("carried_pre").boolean(problem.carried_pre != 0);
  json.key("batch_invariant").boolean(problem.batch_invariant != 0);
  json.key("coresident_units").integer(problem.coresident_units);
  json.key("pdl").boolean(problem.pdl != 0);
  json.key("align_bytes").integer(problem.align_bytes);
  json.key("strided").boolean(problem.strided != 0);
  json.key("consts").begin_object();
  const fmhc_consts& consts = problem.consts;
  json.key("rms_eps").number(static_cast<double>(consts.rms_eps));
  json.key("pre_eps").number(static_cast<double>(consts.pre_eps));
  json.key("sinkhorn_eps").number(static_cast<double>(consts.sinkhorn_eps));
  json.key("post_mult").number(static_cast<double>(consts.post_mult));
  json.key("norm_eps").number(static_cast<double>(consts.norm_eps));
  json.key("sinkhorn_iters").integer(consts.sinkhorn_iters);
  json.end_object().end_object();
}

void write_target(const Target& target, JsonWriter& json) {
  json.key("target").begin_object();
  json.key("device_kind").text(target.device_kind == FMHC_CPU ? "cpu" : "cuda");
  json.key("device_index").integer(target.device_index);
  json.key("arch").integer(target.arch);
  json.key("num_units").integer(target.num_units);
  json.key("smem_bytes").integer(target.smem_bytes);
  json.key("cache_bytes").integer(target.cache_bytes);
  json.end_object();
}

void write_hints(const Hints& hints, JsonWriter& json) {
  json.key("hints").begin_object();
  json.key("kernel").text(hints.kernel);
  json.key("split_k").integer(hints.split_k);
  json.key("split_policy").text(name_at(kPolicies, hints.split_policy));
  json.end_object();
}

struct Question {
  KernelTable kernels;
  const Problem& problem;
  const Target& target;
  const Hints& hints;

  double us(int kernel, int64_t tokens, int32_t split_k) const {
    return predicted_us(kernels[static_cast<size_t>(kernel)], problem, target, tokens, split_k);
  }
};

// The answer for the largest token count.
void write_answer(const Question& question, const PlanData* plan, JsonWriter& json) {
  const int64_t tokens = question.problem.max_tokens;
  json.key("tokens").integer(tokens);
  if (plan == nullptr) {
    json.key("kernel").text(nullptr).key("backend").text(nullptr).key("predicted_us").text(nullptr);
    json.key("split_k").integer(split_for(question.problem, question.target, question.hints, tokens));
    return;
  }
  const Range& range = plan->range_for(tokens);
  const KernelEntry& kernel = question.kernels[range.kernel];
  json.key("kernel").text(kernel.name).key("backend").text(kernel.backend);
  json.key("predicted_us").number(question.us(range.kernel, max64(tokens, 1), range.split_k));
  json.key("split_k").integer(range.split_k);
}

void write_plan(const Question& question, const PlanData* plan, JsonWriter& json) {
  static constexpr PlanData kNone{};
  const PlanData& data = plan != nullptr ? *plan : kNone;
  json.key("scratch_bytes").integer(static_cast<int64_t>(data.scratch_bytes));
  json.key("state_bytes").integer(static_cast<int64_t>(data.state_bytes));
  json.key("packed_bytes").integer(static_cast<int64_t>(data.packed_bytes));
  json.key("ranges").begin_array();
  int64_t from = 0;
  for (int index = 0; index < data.num_ranges; ++index) {
    const Range& range = data.ranges[index];
    const KernelEntry& kernel = question.kernels[range.kernel];
    json.begin_object();
    json.key("from").integer(from).key("to").integer(min64(range.last_tokens, question.problem.max_tokens));
    json.key("kernel").text(kernel.name).key("backend").text(kernel.backend);
    json.key("split_k").integer(range.split_k).key("variant").integer(range.variant);
    json.key("predicted_us").number(question.us(range.kernel, range.last_tokens, range.split_k));
    json.end_object();
    from = range.last_tokens + 1;
  }
  json.end_array();
}

void write_candidates(const Question& question, Build build, JsonWriter& json) {
  const int64_t tokens = max64(question.problem.max_tokens, 1);
  json.key("candidates").begin_array();
  for (int index = 0; index < static_cast<int>(question.kernels.size()); ++index) {
    const KernelEntry& kernel = question.kernels[static_cast<size_t>(index)];
    if (kernel.op != question.problem.op) continue;
    fmhc_diag why{};
    int32_t code = FMHC_OK;
    if (question.hints.kernel != nullptr && !matches_name(kernel.name, question.hints.kernel)) {
      code = fail(&why, FMHC_UNSUPPORTED, "hints.kernel is %.100s", question.hints.kernel);
    } else {
      code = eligible(kernel, question.problem, question.target, question.hints, build, &why);
    }
    json.begin_object();
    json.key("kernel").text(kernel.name).key("backend").text(kernel.backend);
    json.key("not_built").text(kernel.not_built).key("eligible").boolean(code == FMHC_OK);
    if (code == FMHC_OK) {
      const int64_t served = min64(tokens, kernel.traits.max_tokens);
      const Choice choice =
          choice_of(question.kernels, index, question.problem, question.target, question.hints, served);
      json.key("tokens").integer(served).key("split_k").integer(choice.split_k);
      json.key("predicted_us").number(question.us(index, served, choice.split_k));
    } else {
      json.key("reason").text(why.text);
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace

int32_t explain(KernelTable kernels, const Problem& problem, const Target& target, const Hints& hints,
                char* json, size_t capacity, size_t* size, fmhc_diag* diag) {
  const auto choose = [&](Build build, PlanData* plan, fmhc_diag* why) {
    return choose_kernels(kernels, problem, target, hints, build, plan, why);
  };
  PlanData plan;
  fmhc_diag refusal{};
  const int32_t code = choose(Build::kThisBuild, &plan, &refusal);
  if (code == FMHC_INVALID) return fail(diag, code, "%s", refusal.text);
  const Build build = code == FMHC_OK ? Build::kThisBuild : Build::kEveryBackend;
  const bool planned = code == FMHC_OK || choose(build, &plan, nullptr) == FMHC_OK;

  const Question question{kernels, problem, target, hints};
  JsonWriter writer(json, capacity);
  writer.begin_object().key("schema").integer(1);
  write_problem(problem, writer);
  write_target(target, writer);
  write_hints(hints, writer);
  writer.key("runnable").boolean(code == FMHC_OK);
  writer.key("reason").text(code == FMHC_OK ? nullptr : refusal.text);
  write_answer(question, planned ? &plan : nullptr, writer);
  write_plan(question, planned ? &plan : nullptr, writer);
  write_candidates(question, build, writer);
  writer.end_object();
  *size = writer.finish();
  return FMHC_OK;
}

}  // namespace fmhc
