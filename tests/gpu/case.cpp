#include "case.h"

#include <cstdio>

namespace fmhc_gpu {

const char* family_name(Family family) {
  static constexpr const char* kNames[] = {"normal",  "peaked", "massive", "lognormal",
                                           "integer", "tiny",   "cancel",  "huge"};
  return kNames[static_cast<int>(family)];
}

fmhc_problem make_problem(int32_t op, int64_t hidden, int64_t tokens) {
  fmhc_problem problem{};
  problem.struct_size = sizeof problem;
  if (fmhc_preset("deepseek_v4", &problem, nullptr) != FMHC_OK) die("fmhc_preset", "deepseek_v4");
  problem.op = op;
  problem.streams = 4;
  problem.residual_dtype = FMHC_BF16;
  problem.projection = projects(op) ? FMHC_CLASS_F2 : FMHC_CLASS_F;
  problem.hidden = hidden;
  problem.max_tokens = tokens;
  problem.align_bytes = 256;
  return problem;
}

std::string describe(const CaseSpec& spec) {
  const fmhc_problem& p = spec.problem;
  char text[320];
  std::snprintf(
      text, sizeof text,
      "%s T=%lld H=%lld n=%d %s class=%s norm=%s%s carried=%d invariant=%d units=%d pdl=%d align=%d "
      "%s%s%s%s family=%s splits=%d seed=%llu pad=%lld shift=%lld",
      op_name(p.op), static_cast<long long>(spec.tokens), static_cast<long long>(p.hidden), p.streams,
      dtype_name(p.residual_dtype), class_name(p.projection), norm_name(p.norm),
      p.norm_weight_dtype == FMHC_FP32 ? "(fp32 w)" : "", p.carried_pre, p.batch_invariant,
      p.coresident_units, p.pdl, p.align_bytes, p.strided != 0 ? "strided " : "",
      spec.in_place ? "in-place " : "", spec.broadcast ? "broadcast " : "", spec.pre_mix ? "pre_mix" : "",
      family_name(spec.family), p.op == FMHC_FINISH ? spec.given_splits : spec.split_k,
      static_cast<unsigned long long>(spec.seed), static_cast<long long>(spec.row_pad),
      static_cast<long long>(spec.shift));
  return text;
}

}  // namespace fmhc_gpu
