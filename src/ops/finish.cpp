// finish: adds the partials of project in ascending order and makes the coefficients and the layer input.
#include "ops/specs.h"

namespace fmhc {
namespace {

constexpr TensorSpec kTensors[] = {
    {Slot::kDotMixIn,
     Use::kYes,
     DtypeRule::kCoefficient,
     Layout::kWide,
     3,
     {Dim::kSplits, Dim::kTokens, Dim::kLogits}},
    {Slot::kSqrsumIn, Use::kYes, DtypeRule::kCoefficient, Layout::kWide, 2, {Dim::kSplits, Dim::kTokens}},
    rows::kResidual,
    rows::kPreIn,
    rows::kScale,
    rows::kBase,
    rows::kNormWeight,
    rows::kLayerInput,
    rows::kPostMix,
    rows::kCombMix,
    rows::kPreMix,
};

}  // namespace

const OpSpec kFinishSpec = {FMHC_FINISH, "finish", false, true, true, false, kTensors};

}  // namespace fmhc
