// head: one logit a stream, sigmoid and eps, collapse; the exit of a DeepSeek-V4 trunk.
#include "ops/specs.h"

namespace fmhc {
namespace {

constexpr TensorSpec kTensors[] = {
    rows::kResidual,
    rows::kFn,
    rows::kFnPacked,
    rows::with_dims(rows::kScale, 1, Dim::kOne),
    rows::kBase,
    rows::kNormWeight,
    rows::kLayerInput,
    {Slot::kPreMix, Use::kMay, DtypeRule::kCoefficient, Layout::kSmall, 2, {Dim::kTokens, Dim::kStreams}},
};

}  // namespace

const OpSpec kHeadSpec = {FMHC_HEAD, "head", true, true, false, false, kTensors};

}  // namespace fmhc
