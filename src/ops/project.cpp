// project: partial dots of the raw streams with fn and partial square sums, one pair of them for each slice
// of K.
#include "ops/specs.h"

namespace fmhc {
namespace {

constexpr TensorSpec kTensors[] = {
    rows::kResidual,
    rows::kFn,
    rows::kFnPacked,
    {Slot::kDotMix,
     Use::kYes,
     DtypeRule::kCoefficient,
     Layout::kWide,
     3,
     {Dim::kSplits, Dim::kTokens, Dim::kLogits}},
    {Slot::kSqrsum, Use::kYes, DtypeRule::kCoefficient, Layout::kWide, 2, {Dim::kSplits, Dim::kTokens}},
};

}  // namespace

const OpSpec kProjectSpec = {FMHC_PROJECT, "project", true, false, false, false, kTensors};

}  // namespace fmhc
