// pre: project and finish in one call; the layer input and the coefficients of a site from its streams.
#include "ops/specs.h"

namespace fmhc {
namespace {

constexpr TensorSpec kTensors[] = {
    rows::kResidual,   rows::kPreIn,      rows::kFn,      rows::kFnPacked, rows::kScale,  rows::kBase,
    rows::kNormWeight, rows::kLayerInput, rows::kPostMix, rows::kCombMix,  rows::kPreMix,
};

}  // namespace

const OpSpec kPreSpec = {FMHC_PRE, "pre", true, true, true, false, kTensors};

}  // namespace fmhc
