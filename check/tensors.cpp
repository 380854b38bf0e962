#include "check/tensors.h"

#include <algorithm>
#include <cstring>

#include "check/storage.h"

namespace fmhc::check {
namespace {

constexpr uint32_t bit(int32_t op) {
  return 1U << static_cast<uint32_t>(op);
}
constexpr uint32_t kExpand = bit(FMHC_EXPAND), kProject = bit(FMHC_PROJECT), kFinish = bit(FMHC_FINISH),
                   kPre = bit(FMHC_PRE), kPost = bit(FMHC_POST), kSeam = bit(FMHC_SEAM),
                   kHead = bit(FMHC_HEAD), kContract = bit(FMHC_CONTRACT);
constexpr uint32_t kUpdate = kPost | kSeam, kWeighted = kProject | kPre | kSeam | kHead,
                   kAffine = kFinish | kPre | kSeam | kHead, kSite = kFinish | kPre | kSeam,
                   kCollapse = kAffine | kContract;

#define FMHC_INPUT(field) &Tensors::field, &fmhc_args::field, nullptr
#define FMHC_OUTPUT(field) &Tensors::field, nullptr, &fmhc_args::field
constexpr Row kRows[] = {
    {"residual", "TH", Kind::kResidual, When::kAlways, kExpand, FMHC_INPUT(residual)},
    {"residual", "TnH", Kind::kResidual, When::kAlways, ~kExpand, FMHC_INPUT(residual)},
    {"sublayer_output", "TH", Kind::kResidual, When::kAlways, kUpdate, FMHC_INPUT(sublayer_output)},
    {"post_in", "Tn", Kind::kCoefficient, When::kAlways, kUpdate, FMHC_INPUT(post_in)},
    {"comb_in", "Tnn", Kind::kCoefficient, When::kAlways, kUpdate, FMHC_INPUT(comb_in)},
    {"pre_in", "Tn", Kind::kCoefficient, When::kCarried, kCollapse, FMHC_INPUT(pre_in)},
    {"fn", "NK", Kind::kFp32, When::kAlways, kWeighted, FMHC_INPUT(fn)},
    {"scale", "G", Kind::kFp32, When::kAlways, kAffine, FMHC_INPUT(scale)},
    {"base", "N", Kind::kFp32, When::kAlways, kAffine, FMHC_INPUT(base)},
    {"norm_weight", "H", Kind::kNormWeight, When::kNorm, kCollapse, FMHC_INPUT(norm_weight)},
    {"dot_mix_in", "STN", Kind::kCoefficient, When::kAlways, kFinish, FMHC_INPUT(dot_mix_in)},
    {"sqrsum_in", "ST", Kind::kCoefficient, When::kAlways, kFinish, FMHC_INPUT(sqrsum_in)},
    {"residual_out", "TnH", Kind::kResidual, When::kAlways, kExpand | kUpdate, FMHC_OUTPUT(residual_out)},
    {"layer_input", "TH", Kind::kResidual, When::kAlways, kCollapse, FMHC_OUTPUT(layer_input)},
    {"post_mix", "Tn", Kind::kCoefficient, When::kAlways, kSite, FMHC_OUTPUT(post_mix)},
    {"comb_mix", "Tnn", Kind::kCoefficient, When::kAlways, kSite, FMHC_OUTPUT(comb_mix)},
    {"pre_mix", "Tn", Kind::kCoefficient, When::kOptional, kAffine, FMHC_OUTPUT(pre_mix)},
    {"dot_mix", "STN", Kind::kCoefficient, When::kAlways, kProject, FMHC_OUTPUT(dot_mix)},
    {"sqrsum", "ST", Kind::kCoefficient, When::kAlways, kProject, FMHC_OUTPUT(sqrsum)},
};
#undef FMHC_INPUT
#undef FMHC_OUTPUT

int64_t extent(char dim, const Case& call) {
  const fmhc_problem& problem = call.problem;
  switch (dim) {
    case 'T':
      return call.tokens;
    case 'n':
      return problem.streams;
    case 'H':
      return problem.hidden;
    case 'K':
      return problem.hidden * problem.streams;
    case 'N':
      return logit_count(problem);
    case 'S':
      return call.splits;
    default:
      return problem.op == FMHC_HEAD ? 1 : 3;
  }
}

fmhc_in as_input(const fmhc_out& tensor) {
  fmhc_in in{tensor.data, {}, {}, tensor.rank, tensor.dtype};
  std::copy(std::begin(tensor.shape), std::end(tensor.shape), std::begin(in.shape));
  std::copy(std::begin(tensor.stride), std::end(tensor.stride), std::begin(in.stride));
  return in;
}

}  // namespace

std::span<const Row> rows() {
  return kRows;
}

bool has(const Row& row, const Case& call) {
  if ((row.ops & bit(call.problem.op)) == 0) return false;
  if (row.when == When::kCarried) return call.problem.carried_pre != 0;
  if (row.when == When::kNorm) return call.problem.norm != FMHC_NORM_NONE;
  return true;
}

std::vector<int64_t> shape_of(const Row& row, const Case& call) {
  std::vector<int64_t> shape;
  for (const char* dim = row.dims; *dim != '\0'; ++dim) shape.push_back(extent(*dim, call));
  return shape;
}

int32_t dtype_of(const Row& row, const fmhc_problem& problem) {
  switch (row.kind) {
    case Kind::kResidual:
      return problem.residual_dtype;
    case Kind::kCoefficient:
      return problem.residual_dtype == FMHC_FP64 ? FMHC_FP64 : FMHC_FP32;
    case Kind::kNormWeight:
      return problem.norm_weight_dtype;
    default:
      return FMHC_FP32;
  }
}

int64_t logit_count(const fmhc_problem& problem) {
  const int64_t n = problem.streams;
  return problem.op == FMHC_HEAD ? n : n * (n + 2);
}

Values read_tensor(const fmhc_in& tensor) {
  Values values;
  if (tensor.rank <= 0 || tensor.rank > 4 || tensor.data == nullptr) return values;
  int64_t count = 1;
  for (int axis = 0; axis < tensor.rank; ++axis) count *= tensor.shape[axis];
  values.reserve(static_cast<size_t>(std::max<int64_t>(count, 0)));
  int64_t index[4] = {};
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (int axis = 0; axis < tensor.rank; ++axis) offset += index[axis] * tensor.stride[axis];
    values.push_back(load(tensor.data, tensor.dtype, offset));
    for (int axis = tensor.rank - 1; axis >= 0 && ++index[axis] == tensor.shape[axis]; --axis)
      index[axis] = 0;
  }
  return values;
}

void read_args(const fmhc_problem& problem, const fmhc_args& args, Case* call, Tensors* outputs) {
  call->problem = problem;
  const bool grows = args.residual.rank > 0;
  call->tokens = grows ? args.residual.shape[0] : 0;
  call->splits = std::max<int64_t>(1, args.dot_mix_in.rank == 3 ? args.dot_mix_in.shape[0]
                                      : args.dot_mix.rank == 3  ? args.dot_mix.shape[0]
                                                                : 1);
  for (const Row& row : rows()) {
    if (!has(row, *call)) continue;
    if (row.in != nullptr) call->in.*row.values = read_tensor(args.*row.in);
    if (row.out != nullptr) outputs->*row.values = read_tensor(as_input(args.*row.out));
  }
}

}  // namespace fmhc::check
