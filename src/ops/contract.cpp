// contract: the mean of the streams (GLM-5), or with carried_pre their sum weighted by pre_in (the exit of
// V4.1).
#include "ops/specs.h"

namespace fmhc {
namespace {

constexpr TensorSpec kTensors[] = {
    rows::kResidual,
    rows::kPreIn,
    rows::kNormWeight,
    rows::kLayerInput,
};

}  // namespace

const OpSpec kContractSpec = {FMHC_CONTRACT, "contract", false, true, true, false, kTensors};

}  // namespace fmhc
