#include "ops/check_problem.h"

#include <cmath>

#include "core/dtype.h"
#include "core/math.h"
#include "ops/read_struct.h"

namespace fmhc {
namespace {

struct IntRule {
  const char* name;
  int32_t fmhc_problem::*field;
  int32_t low, high;
  const char* accepted;
};

constexpr IntRule kIntRules[] = {
    {"streams", &fmhc_problem::streams, 1, 8, "1..8"},
    {"residual_dtype", &fmhc_problem::residual_dtype, FMHC_BF16, FMHC_FP64, "BF16, FP16, FP32 or FP64"},
    {"projection", &fmhc_problem::projection, FMHC_CLASS_F, FMHC_CLASS_R, "F (1), F2 (2) or R (3)"},
    {"norm", &fmhc_problem::norm, FMHC_NORM_NONE, FMHC_NORM_UNFUSED, "none (0), engine (1) or unfused (2)"},
    {"norm_weight_dtype", &fmhc_problem::norm_weight_dtype, 0, FMHC_FP64, "0, BF16, FP32 or FP64"},
    {"quant", &fmhc_problem::quant, FMHC_QUANT_NONE, FMHC_QUANT_MXFP8_32, "none (0), e4m3 (1) or mxfp8 (2)"},
    {"carried_pre", &fmhc_problem::carried_pre, 0, 1, "0 or 1"},
    {"batch_invariant", &fmhc_problem::batch_invariant, 0, 1, "0 or 1"},
    {"coresident_units", &fmhc_problem::coresident_units, 0, 1 << 20, "0..1048576"},
    {"pdl", &fmhc_problem::pdl, 0, 1, "0 or 1"},
    {"strided", &fmhc_problem::strided, 0, 1, "0 or 1"},
};

struct ConstRule {
  const char* name;
  float fmhc_consts::*field;
  bool may_be_negative;
};

constexpr ConstRule kConstRules[] = {
    {"consts.rms_eps", &fmhc_consts::rms_eps, false},
    {"consts.pre_eps", &fmhc_consts::pre_eps, false},
    {"consts.sinkhorn_eps", &fmhc_consts::sinkhorn_eps, false},
    {"consts.norm_eps", &fmhc_consts::norm_eps, false},
    {"consts.post_mult", &fmhc_consts::post_mult, true},
};

constexpr int32_t kMaxSinkhornIters = 1000;

bool makes_coefficients(int32_t op) {
  return op == FMHC_FINISH || op == FMHC_PRE || op == FMHC_SEAM;
}

int32_t check_ranges(const Problem& problem, fmhc_diag* diag) {
  for (const IntRule& rule : kIntRules) {
    const int32_t value = problem.*rule.field;
    if (value < rule.low || value > rule.high) {
      return fail(diag, FMHC_INVALID, "problem.%s is %d; accepted: %s", rule.name, value, rule.accepted);
    }
  }
  const int32_t align = problem.align_bytes;
  if (align < 0 || align > 256 || (align & (align - 1)) != 0) {
    return fail(diag, FMHC_INVALID, "problem.align_bytes is %d; accepted: 0 or a power of two up to 256",
                align);
  }
  if (problem.hidden < 1) {
    return fail(diag, FMHC_INVALID, "problem.hidden is %lld; accepted: >= 1",
                static_cast<long long>(problem.hidden));
  }
  if (problem.max_tokens < 0) {
    return fail(diag, FMHC_INVALID, "problem.max_tokens is %lld; accepted: >= 0",
                static_cast<long long>(problem.max_tokens));
  }
  return FMHC_OK;
}

int32_t check_consts(const Problem& problem, fmhc_diag* diag) {
  for (const ConstRule& rule : kConstRules) {
    const auto value = static_cast<double>(problem.consts.*rule.field);
    if (!std::isfinite(value) || (value < 0 && !rule.may_be_negative)) {
      return fail(diag, FMHC_INVALID, "problem.%s is %g; accepted: finite%s", rule.name, value,
                  rule.may_be_negative ? "" : " and >= 0");
    }
  }
  const int32_t iters = problem.consts.sinkhorn_iters;
  const int32_t least = makes_coefficients(problem.op) ? 1 : 0;
  if (iters < least || iters > kMaxSinkhornIters) {
    return fail(diag, FMHC_INVALID, "problem.consts.sinkhorn_iters is %d; accepted: %d..%d", iters, least,
                kMaxSinkhornIters);
  }
  return FMHC_OK;
}

// Nothing is dropped silently: an option that the operator does not have must be off.
int32_t check_options(const Problem& problem, const OpSpec& op, fmhc_diag* diag) {
  if (problem.norm != FMHC_NORM_NONE && !op.collapses) {
    return fail(diag, FMHC_INVALID, "problem.norm is %d; %s makes no layer input: accepted: none (0)",
                problem.norm, op.name);
  }
  if (problem.carried_pre != 0 && !op.may_carry) {
    return fail(diag, FMHC_INVALID, "problem.carried_pre is 1; %s carries no mix: accepted: 0", op.name);
  }
  if (problem.projection != FMHC_CLASS_F && !op.projects) {
    return fail(diag, FMHC_INVALID, "problem.projection is %d; %s projects nothing: accepted: F (1)",
                problem.projection, op.name);
  }
  if (problem.quant != FMHC_QUANT_NONE) {
    return fail(diag, FMHC_UNSUPPORTED,
                "problem.quant is %d; no kernel of this build quantises: accepted: none (0)", problem.quant);
  }
  const bool wide = problem.residual_dtype == FMHC_FP64;
  const int32_t weight = problem.norm_weight_dtype;
  if (problem.norm == FMHC_NORM_NONE
          ? weight != 0
          : weight != FMHC_BF16 && weight != FMHC_FP32 && !(wide && weight == FMHC_FP64)) {
    return fail(
        diag, FMHC_INVALID, "problem.norm_weight_dtype is %d; accepted: %s", weight,
        problem.norm == FMHC_NORM_NONE ? "0 without a norm" : "BF16 or FP32 (FP64 with an FP64 residual)");
  }
  return FMHC_OK;
}

int32_t check_sizes(const Problem& problem, fmhc_diag* diag) {
  int64_t flat = 0;
  int64_t elements = 0;
  const int64_t logits = logit_count(problem);
  if (!checked_mul(problem.hidden, problem.streams, &flat) || !checked_mul(flat, logits * 8, &elements)) {
    return fail(diag, FMHC_INVALID, "problem.hidden is %lld; fn of %d streams would pass 2^63 bytes",
                static_cast<long long>(problem.hidden), problem.streams);
  }
  if (!checked_mul(flat, max64(problem.max_tokens, 1), &elements) || !checked_mul(elements, 8, &elements)) {
    return fail(diag, FMHC_INVALID,
                "problem.max_tokens is %lld; a residual of hidden %lld would pass 2^63 bytes",
                static_cast<long long>(problem.max_tokens), static_cast<long long>(problem.hidden));
  }
  return FMHC_OK;
}

}  // namespace

int32_t read_problem(const fmhc_problem* given, Problem* out, fmhc_diag* diag) {
  FMHC_TRY(read_struct(given, "problem", out, diag));
  const OpSpec* op = find_op(out->op);
  if (op == nullptr) return fail(diag, FMHC_INVALID, "problem.op is %d; accepted: 1..8 (fmhc_op)", out->op);
  FMHC_TRY(check_ranges(*out, diag));
  FMHC_TRY(check_consts(*out, diag));
  FMHC_TRY(check_options(*out, *op, diag));
  return check_sizes(*out, diag);
}

}  // namespace fmhc
