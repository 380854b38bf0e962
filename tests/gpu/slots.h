// The tensors of fmhc_args as a table, written from the documentation of the interface: which operator takes
// which tensor, its shape and its type. One loop over it lays out, fills, poisons and checks any call.
#pragma once

#include <cstdint>
#include <span>

#include "flashmhc/flashmhc.h"
#include "values.h"

namespace fmhc_gpu {

enum SlotId {
  kResidual,
  kSublayerOutput,
  kPostIn,
  kCombIn,
  kPreIn,
  kFn,
  kScale,
  kBase,
  kNormWeight,
  kDotMixIn,
  kSqrsumIn,
  kResidualOut,
  kLayerInput,
  kPostMix,
  kCombMix,
  kPreMix,
  kDotMix,
  kSqrsum,
  kSlots
};

using InField = fmhc_in fmhc_args::*;
using OutField = fmhc_out fmhc_args::*;

struct Slot {
  const char* name;
  const char* dims;  // T n H K (n*H) N (logits) S (partials) s (scales)
  char type;         // r: residual_dtype, f: fp32, w: norm_weight_dtype
  bool wide;         // keeps the promised alignment
  uint32_t ops;      // bits of fmhc_op
  InField in;
  OutField out;
};

std::span<const Slot> slots();

// Extents that a problem leaves open.
struct Extents {
  int64_t tokens;
  int64_t splits;
};

bool takes(const fmhc_problem& problem, SlotId slot);
View shape_of(const fmhc_problem& problem, SlotId slot, const Extents& extents);  // packed strides, no data
void set_tensor(fmhc_args* args, SlotId slot, const View& view);
const char* op_name(int32_t op);
const char* dtype_name(int32_t dtype);
const char* norm_name(int32_t norm);
const char* class_name(int32_t projection);

inline int64_t logits_of(const fmhc_problem& problem) {
  const int64_t n = problem.streams;
  return problem.op == FMHC_HEAD ? n : n * (2 + n);
}
inline int64_t flat_of(const fmhc_problem& problem) {
  return problem.streams * problem.hidden;
}
inline bool projects(int32_t op) {
  return op == FMHC_PROJECT || op == FMHC_PRE || op == FMHC_SEAM || op == FMHC_HEAD;
}
inline bool collapses(int32_t op) {
  return op == FMHC_FINISH || op == FMHC_PRE || op == FMHC_SEAM || op == FMHC_HEAD || op == FMHC_CONTRACT;
}
inline bool may_carry(int32_t op) {
  return op == FMHC_FINISH || op == FMHC_PRE || op == FMHC_SEAM || op == FMHC_CONTRACT;
}

}  // namespace fmhc_gpu
