#include "cli/problem_options.h"

#include <charconv>

namespace fmhc::cli {
namespace {

constexpr Named kOps[] = {{"expand", FMHC_EXPAND}, {"project", FMHC_PROJECT},  {"finish", FMHC_FINISH},
                          {"pre", FMHC_PRE},       {"post", FMHC_POST},        {"seam", FMHC_SEAM},
                          {"head", FMHC_HEAD},     {"contract", FMHC_CONTRACT}};
constexpr Named kDtypes[] = {
    {"bf16", FMHC_BF16}, {"fp16", FMHC_FP16}, {"fp32", FMHC_FP32}, {"fp64", FMHC_FP64}};
constexpr Named kClasses[] = {{"F", FMHC_CLASS_F}, {"F2", FMHC_CLASS_F2}, {"R", FMHC_CLASS_R}};
constexpr Named kNorms[] = {
    {"none", FMHC_NORM_NONE}, {"engine", FMHC_NORM_ENGINE}, {"unfused", FMHC_NORM_UNFUSED}};
constexpr Named kSplitPolicies[] = {{"auto", FMHC_SPLIT_AUTO}, {"sglang", FMHC_SPLIT_SGLANG}};

std::string joined(std::span<const Named> names) {
  std::string text;
  for (const Named& row : names) text += (text.empty() ? "" : ", ") + std::string(row.name);
  return text;
}

}  // namespace

std::span<const Named> op_names() {
  return kOps;
}
std::span<const Named> dtype_names() {
  return kDtypes;
}
std::span<const Named> class_names() {
  return kClasses;
}
std::span<const Named> norm_names() {
  return kNorms;
}
std::span<const Named> split_policy_names() {
  return kSplitPolicies;
}

const char* name_of(std::span<const Named> names, int32_t value) {
  for (const Named& row : names) {
    if (row.value == value) return row.name;
  }
  return "unknown";
}

int32_t value_of(std::span<const Named> names, const std::string& name, const char* option) {
  for (const Named& row : names) {
    if (name == row.name) return row.value;
  }
  throw Failure(kExitBad, std::string(option) + " is \"" + name + "\"; accepted: " + joined(names));
}

void ProblemOptions::add_to(CLI::App& app, const Environment& environment) {
  app.add_option("--op", op, "Operator: " + joined(kOps))->capture_default_str();
  app.add_option("--hidden", hidden, "Hidden size H")->capture_default_str();
  app.add_option("--tokens", tokens, "Tokens T")->capture_default_str();
  add_model_to(app, environment);
}

void ProblemOptions::add_model_to(CLI::App& app, const Environment& environment) {
  batch_invariant = environment.value("FLASHMHC_BATCH_INVARIANT") == "1";
  app.add_option("--model", model, "Model whose constants are used")->capture_default_str();
  app.add_option("--streams", streams, "Streams n")->capture_default_str();
  app.add_option("--dtype", dtype, "Storage of the streams: " + joined(kDtypes))->capture_default_str();
  app.add_option("--class", projection, "Numerics class of the projection: " + joined(kClasses))
      ->capture_default_str();
  app.add_option("--norm", norm, "RMSNorm of the layer input: " + joined(kNorms))->capture_default_str();
  app.add_option("--align", align_bytes, "Promised alignment of rows in bytes")->capture_default_str();
  app.add_option("--coresident-units", coresident_units, "Multiprocessors that may wait for one another")
      ->capture_default_str();
  app.add_flag("--batch-invariant,!--no-batch-invariant", batch_invariant,
               "A token's bits do not depend on the batch");
  app.add_flag("--carried-pre,!--no-carried-pre", carried_pre, "Collapse with a given mix (DeepSeek-V4.1)");
  app.add_flag("--strided", strided, "Tensors may have row strides");
  app.add_flag("--pdl", pdl, "Programmatic dependent launch allowed");
}

fmhc_problem ProblemOptions::problem() const {
  fmhc_problem problem{};
  problem.struct_size = sizeof problem;
  fmhc_diag diag{};
  require_ok(fmhc_preset(model.c_str(), &problem, &diag), diag);
  problem.op = value_of(kOps, op, "--op");
  problem.streams = streams;
  problem.residual_dtype = value_of(kDtypes, dtype, "--dtype");
  problem.projection = value_of(kClasses, projection, "--class");
  problem.norm = value_of(kNorms, norm, "--norm");
  problem.norm_weight_dtype = problem.norm == FMHC_NORM_NONE ? 0 : FMHC_BF16;
  const bool may_carry = problem.op == FMHC_FINISH || problem.op == FMHC_PRE || problem.op == FMHC_SEAM ||
                         problem.op == FMHC_CONTRACT;
  // A model that carries its mix does so where the operator can; asked for by option, the library decides.
  problem.carried_pre = carried_pre || (problem.carried_pre != 0 && may_carry) ? 1 : 0;
  problem.batch_invariant = batch_invariant ? 1 : 0;
  problem.coresident_units = coresident_units;
  problem.pdl = pdl ? 1 : 0;
  problem.align_bytes = align_bytes;
  problem.strided = strided ? 1 : 0;
  problem.hidden = hidden;
  problem.max_tokens = tokens;
  return problem;
}

void TargetOptions::add_to(CLI::App& app) {
  app.add_option("--target", name,
                 "Machine to plan for: cpu (this one), h200, b200, ...; default: cpu, with --units h200");
  app.add_option("--units", units, "Multiprocessors or CPU threads instead of what the target has")
      ->check(CLI::PositiveNumber);
}

fmhc_target TargetOptions::target() const {
  const std::string given = !name.empty() ? name : units > 0 ? "h200" : "cpu";
  fmhc_target target{};
  fmhc_diag diag{};
  require_ok(fmhc_target_named(given.c_str(), &target, &diag), diag);
  if (units > 0) target.num_units = units;
  return target;
}

void HintOptions::add_to(CLI::App& app, const Environment& environment) {
  kernel = environment.kernel_prefix();
  app.add_option("--kernel,--backend", kernel, "A kernel's name or a dotted prefix of it: ref, cpu.avx2");
  app.add_option("--split-k", split_k, "Slices of K: a number, or a policy: " + joined(kSplitPolicies));
}

fmhc_hints HintOptions::hints() const {
  fmhc_hints hints{};
  hints.struct_size = sizeof hints;
  hints.kernel = kernel.empty() || kernel == "auto" ? nullptr : kernel.c_str();
  if (split_k.empty()) return hints;
  const char* end = split_k.data() + split_k.size();
  const auto [stop, error] = std::from_chars(split_k.data(), end, hints.split_k);
  if (error == std::errc{} && stop == end) return hints;
  hints.split_k = 0;
  hints.split_policy = value_of(kSplitPolicies, split_k, "--split-k");
  return hints;
}

Json explain_plan(const fmhc_problem& problem, const fmhc_target& target, const fmhc_hints& hints) {
  fmhc_diag diag{};
  size_t needed = 0;
  require_ok(fmhc_plan_explain(&problem, &target, &hints, nullptr, 0, &needed, &diag), diag);
  std::string text(needed, '\0');
  require_ok(fmhc_plan_explain(&problem, &target, &hints, text.data(), text.size(), nullptr, &diag), diag);
  return Json::parse(text.c_str());
}

}  // namespace fmhc::cli
