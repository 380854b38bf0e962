// expand: residual_out[t,j,:] = residual[t,:], the embedding copied into every stream.
#include "ops/specs.h"

namespace fmhc {
namespace {

constexpr TensorSpec kTensors[] = {
    rows::with_dims(rows::kResidual, 2, Dim::kTokens, Dim::kHidden),
    rows::kResidualOut,
};

}  // namespace

const OpSpec kExpandSpec = {FMHC_EXPAND, "expand", false, false, false, false, kTensors};

}  // namespace fmhc
