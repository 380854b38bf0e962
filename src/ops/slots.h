// The tensors of fmhc_args as data: every slot has a name and a place, so that checks are one loop over a
// table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flashmhc/flashmhc.h"

namespace fmhc {

enum class Slot : uint8_t {
  kResidual,
  kSublayerOutput,
  kPostIn,
  kCombIn,
  kPreIn,
  kFn,
  kFnPacked,
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
  kQuant,
  kQuantScale,
};
inline constexpr int kSlotCount = 21;
inline constexpr Slot kFirstOutput = Slot::kResidualOut;

static_assert(sizeof(fmhc_in) == sizeof(fmhc_out) && offsetof(fmhc_in, dtype) == offsetof(fmhc_out, dtype));

struct SlotInfo {
  const char* name;
  size_t offset;  // in fmhc_args
};

inline constexpr SlotInfo kSlots[kSlotCount] = {
#define FMHC_SLOT(field) \
  { #field, offsetof(fmhc_args, field) }
    FMHC_SLOT(residual),     FMHC_SLOT(sublayer_output), FMHC_SLOT(post_in),
    FMHC_SLOT(comb_in),      FMHC_SLOT(pre_in),          FMHC_SLOT(fn),
    FMHC_SLOT(fn_packed),    FMHC_SLOT(scale),           FMHC_SLOT(base),
    FMHC_SLOT(norm_weight),  FMHC_SLOT(dot_mix_in),      FMHC_SLOT(sqrsum_in),
    FMHC_SLOT(residual_out), FMHC_SLOT(layer_input),     FMHC_SLOT(post_mix),
    FMHC_SLOT(comb_mix),     FMHC_SLOT(pre_mix),         FMHC_SLOT(dot_mix),
    FMHC_SLOT(sqrsum),       FMHC_SLOT(quant),           FMHC_SLOT(quant_scale),
#undef FMHC_SLOT
};

constexpr const char* slot_name(Slot slot) {
  return kSlots[static_cast<int>(slot)].name;
}
constexpr bool is_output(Slot slot) {
  return slot >= kFirstOutput;
}

// Reads an output as an input: the two structs have one layout.
inline fmhc_in read_slot(const fmhc_args& args, Slot slot) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&args) + kSlots[static_cast<int>(slot)].offset;
  if (!is_output(slot)) return *reinterpret_cast<const fmhc_in*>(bytes);
  const auto& out = *reinterpret_cast<const fmhc_out*>(bytes);
  fmhc_in tensor{out.data, {}, {}, out.rank, out.dtype};
  for (int axis = 0; axis < 4; ++axis) {
    tensor.shape[axis] = out.shape[axis];
    tensor.stride[axis] = out.stride[axis];
  }
  return tensor;
}

inline bool is_absent(const fmhc_in& tensor) {
  return tensor.data == nullptr && tensor.rank == 0;
}

}  // namespace fmhc
