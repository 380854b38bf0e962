// seam: post of one site and pre of the next; every statistic is taken of the rounded new residual.
#include "ops/specs.h"

namespace fmhc {
namespace {

constexpr TensorSpec kTensors[] = {
    rows::kResidual,    rows::kSublayerOutput, rows::kPostIn,  rows::kCombIn,  rows::kPreIn,
    rows::kFn,          rows::kFnPacked,       rows::kScale,   rows::kBase,    rows::kNormWeight,
    rows::kResidualOut, rows::kLayerInput,     rows::kPostMix, rows::kCombMix, rows::kPreMix,
};

}  // namespace

const OpSpec kSeamSpec = {FMHC_SEAM, "seam", true, true, true, true, kTensors};

}  // namespace fmhc
