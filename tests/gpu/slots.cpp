#include "slots.h"

#include <cstring>

namespace fmhc_gpu {
namespace {

constexpr uint32_t bit(int32_t op) {
  return 1u << op;
}
constexpr uint32_t kProjecting = bit(FMHC_PROJECT) | bit(FMHC_PRE) | bit(FMHC_SEAM) | bit(FMHC_HEAD);
constexpr uint32_t kMakesMix = bit(FMHC_FINISH) | bit(FMHC_PRE) | bit(FMHC_SEAM);
constexpr uint32_t kMakesInput = kMakesMix | bit(FMHC_HEAD) | bit(FMHC_CONTRACT);
constexpr uint32_t kUpdates = bit(FMHC_POST) | bit(FMHC_SEAM);
constexpr uint32_t kCarries = kMakesMix | bit(FMHC_CONTRACT);
constexpr uint32_t kAll = kProjecting | kMakesInput | kUpdates | bit(FMHC_EXPAND);

constexpr Slot input(const char* name, const char* dims, char type, bool wide, uint32_t ops, InField in) {
  return {name, dims, type, wide, ops, in, nullptr};
}
constexpr Slot output(const char* name, const char* dims, char type, bool wide, uint32_t ops, OutField out) {
  return {name, dims, type, wide, ops, nullptr, out};
}

constexpr Slot kTable[kSlots] = {
    input("residual", "TnH", 'r', true, kAll, &fmhc_args::residual),
    input("sublayer_output", "TH", 'r', true, kUpdates, &fmhc_args::sublayer_output),
    input("post_in", "Tn", 'f', false, kUpdates, &fmhc_args::post_in),
    input("comb_in", "Tnn", 'f', false, kUpdates, &fmhc_args::comb_in),
    input("pre_in", "Tn", 'f', false, kCarries, &fmhc_args::pre_in),
    input("fn", "NK", 'f', false, kProjecting, &fmhc_args::fn),
    input("scale", "s", 'f', false, kMakesMix | bit(FMHC_HEAD), &fmhc_args::scale),
    input("base", "N", 'f', false, kMakesMix | bit(FMHC_HEAD), &fmhc_args::base),
    input("norm_weight", "H", 'w', false, kMakesInput, &fmhc_args::norm_weight),
    input("dot_mix_in", "STN", 'f', false, bit(FMHC_FINISH), &fmhc_args::dot_mix_in),
    input("sqrsum_in", "ST", 'f', false, bit(FMHC_FINISH), &fmhc_args::sqrsum_in),
    output("residual_out", "TnH", 'r', true, kUpdates | bit(FMHC_EXPAND), &fmhc_args::residual_out),
    output("layer_input", "TH", 'r', true, kMakesInput, &fmhc_args::layer_input),
    output("post_mix", "Tn", 'f', false, kMakesMix, &fmhc_args::post_mix),
    output("comb_mix", "Tnn", 'f', false, kMakesMix, &fmhc_args::comb_mix),
    output("pre_mix", "Tn", 'f', false, kMakesMix | bit(FMHC_HEAD), &fmhc_args::pre_mix),
    output("dot_mix", "STN", 'f', false, bit(FMHC_PROJECT), &fmhc_args::dot_mix),
    output("sqrsum", "ST", 'f', false, bit(FMHC_PROJECT), &fmhc_args::sqrsum),
};

int64_t extent(char dim, const fmhc_problem& problem, const Extents& extents) {
  switch (dim) {
    case 'T':
      return extents.tokens;
    case 'S':
      return extents.splits;
    case 'n':
      return problem.streams;
    case 'H':
      return problem.hidden;
    case 'K':
      return flat_of(problem);
    case 'N':
      return logits_of(problem);
    default:
      return problem.op == FMHC_HEAD ? 1 : 3;
  }
}

}  // namespace

std::span<const Slot> slots() {
  return kTable;
}

bool takes(const fmhc_problem& problem, SlotId slot) {
  if ((kTable[slot].ops & bit(problem.op)) == 0) return false;
  if (slot == kPreIn) return problem.carried_pre != 0;
  if (slot == kNormWeight) return problem.norm != FMHC_NORM_NONE;
  return true;
}

View shape_of(const fmhc_problem& problem, SlotId slot, const Extents& extents) {
  const Slot& row = kTable[slot];
  const char* dims = slot == kResidual && problem.op == FMHC_EXPAND ? "TH" : row.dims;
  View view;
  view.rank = static_cast<int32_t>(std::strlen(dims));
  view.dtype = row.type == 'r'   ? problem.residual_dtype
               : row.type == 'w' ? problem.norm_weight_dtype
                                 : static_cast<int32_t>(FMHC_FP32);
  int64_t step = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.shape[axis] = extent(dims[axis], problem, extents);
    view.stride[axis] = step;
    step *= view.shape[axis] > 0 ? view.shape[axis] : 1;
  }
  return view;
}

void set_tensor(fmhc_args* args, SlotId slot, const View& view) {
  const Slot& row = kTable[slot];
  const auto copy = [&](auto* tensor) {
    tensor->data = view.data;
    tensor->rank = view.rank;
    tensor->dtype = view.dtype;
    for (int axis = 0; axis < 4; ++axis) {
      tensor->shape[axis] = view.shape[axis];
      tensor->stride[axis] = view.stride[axis];
    }
  };
  if (row.in != nullptr) {
    copy(&(args->*row.in));
  } else {
    copy(&(args->*row.out));
  }
}

const char* op_name(int32_t op) {
  static constexpr const char* kNames[] = {"?",    "expand", "project", "finish",  "pre",
                                           "post", "seam",   "head",    "contract"};
  return kNames[op >= 1 && op <= 8 ? op : 0];
}

const char* dtype_name(int32_t dtype) {
  static constexpr const char* kNames[] = {"none", "bf16", "fp16", "fp32", "fp64"};
  return kNames[dtype >= 0 && dtype <= 4 ? dtype : 0];
}

const char* norm_name(int32_t norm) {
  static constexpr const char* kNames[] = {"none", "engine", "unfused"};
  return kNames[norm >= 0 && norm <= 2 ? norm : 0];
}

const char* class_name(int32_t projection) {
  static constexpr const char* kNames[] = {"?", "F", "F2", "R"};
  return kNames[projection >= 1 && projection <= 3 ? projection : 0];
}

}  // namespace fmhc_gpu
