// post: mixes the streams by comb_in[src, dst] and adds the sublayer's output weighted by post_in.
#include "ops/specs.h"

namespace fmhc {
namespace {

constexpr TensorSpec kTensors[] = {
    rows::kResidual, rows::kSublayerOutput, rows::kPostIn, rows::kCombIn, rows::kResidualOut,
};

}  // namespace

const OpSpec kPostSpec = {FMHC_POST, "post", false, false, false, true, kTensors};

}  // namespace fmhc
