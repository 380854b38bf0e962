#include "ops/op.h"

#include "core/dtype.h"
#include "ops/specs.h"

namespace fmhc {
namespace {

constexpr const OpSpec* kOps[] = {&kExpandSpec, &kProjectSpec, &kFinishSpec, &kPreSpec,
                                  &kPostSpec,   &kSeamSpec,    &kHeadSpec,   &kContractSpec};

}  // namespace

std::span<const OpSpec* const> all_ops() {
  return kOps;
}

const OpSpec* find_op(int32_t op) {
  for (const OpSpec* spec : kOps) {
    if (spec->op == op) return spec;
  }
  return nullptr;
}

int64_t extent(Dim dim, const Problem& problem, int64_t tokens, int64_t splits, int64_t packed_bytes) {
  switch (dim) {
    case Dim::kTokens:
      return tokens;
    case Dim::kStreams:
      return problem.streams;
    case Dim::kHidden:
      return problem.hidden;
    case Dim::kFlat:
      return flat_width(problem);
    case Dim::kLogits:
      return logit_count(problem);
    case Dim::kSplits:
      return splits;
    case Dim::kOne:
      return 1;
    case Dim::kThree:
      return 3;
    case Dim::kPackedBytes:
      return packed_bytes;
    case Dim::kNone:
      break;
  }
  return 0;
}

bool requires_tensor(const TensorSpec& spec, const Problem& problem, Weights weights) {
  switch (spec.use) {
    case Use::kYes:
      return !(weights == Weights::kPacked && spec.slot == Slot::kFn);
    case Use::kMay:
      return false;
    case Use::kIfCarried:
    case Use::kIfCarriedElseMay:
      return problem.carried_pre != 0;
    case Use::kIfNorm:
      return problem.norm != FMHC_NORM_NONE;
    case Use::kIfPacked:
      return weights == Weights::kPacked;
  }
  return false;
}

bool uses(const TensorSpec& spec, const Problem& problem, Weights weights) {
  if (spec.use == Use::kIfPacked) return weights != Weights::kRaw;
  return spec.use == Use::kMay || spec.use == Use::kIfCarriedElseMay || spec.slot == Slot::kFn ||
         requires_tensor(spec, problem, weights);
}

int32_t required_dtype(DtypeRule rule, const Problem& problem) {
  switch (rule) {
    case DtypeRule::kResidual:
      return problem.residual_dtype;
    case DtypeRule::kCoefficient:
      return problem.residual_dtype == FMHC_FP64 ? FMHC_FP64 : FMHC_FP32;
    case DtypeRule::kFp32:
      return FMHC_FP32;
    case DtypeRule::kNormWeight:
      return problem.norm_weight_dtype;
    case DtypeRule::kBytes:
      break;
  }
  return 0;
}

Traffic ideal_traffic(const Problem& problem, int64_t tokens) {
  Traffic traffic{};
  const OpSpec* op = find_op(problem.op);
  for (const TensorSpec& spec : op->tensors) {
    if (!requires_tensor(spec, problem, Weights::kRaw)) continue;
    double elements = 1;
    for (int axis = 0; axis < spec.rank; ++axis) {
      elements *= static_cast<double>(extent(spec.dims[axis], problem, tokens, 1, 0));
    }
    const bool grows = spec.dims[0] == Dim::kTokens || spec.dims[0] == Dim::kSplits;
    (grows ? traffic.token_bytes : traffic.weight_bytes) +=
        elements * dtype_bytes(required_dtype(spec.dtype, problem));
  }
  const auto t = static_cast<double>(tokens);
  const auto n = static_cast<double>(problem.streams);
  const auto h = static_cast<double>(problem.hidden);
  if (op->projects) traffic.flops += t * n * h * 2 * (static_cast<double>(logit_count(problem)) + 1);
  if (op->collapses) traffic.flops += t * n * h * 2;
  if (op->op == FMHC_POST || op->op == FMHC_SEAM) traffic.flops += t * n * h * 2 * (n + 1);
  return traffic;
}

}  // namespace fmhc
