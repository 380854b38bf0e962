// One OpSpec an operator, and the rows that several operators share.
#pragma once

#include "ops/op.h"

namespace fmhc {

extern const OpSpec kExpandSpec, kProjectSpec, kFinishSpec, kPreSpec, kPostSpec, kSeamSpec, kHeadSpec,
    kContractSpec;

namespace rows {

inline constexpr TensorSpec kResidual = {
    Slot::kResidual, Use::kYes, DtypeRule::kResidual,
    Layout::kWide,   3,         {Dim::kTokens, Dim::kStreams, Dim::kHidden}};
inline constexpr TensorSpec kSublayerOutput = {
    Slot::kSublayerOutput, Use::kYes, DtypeRule::kResidual, Layout::kWide, 2, {Dim::kTokens, Dim::kHidden}};
inline constexpr TensorSpec kPostIn = {Slot::kPostIn,  Use::kYes, DtypeRule::kCoefficient,
                                       Layout::kSmall, 2,         {Dim::kTokens, Dim::kStreams}};
inline constexpr TensorSpec kCombIn = {
    Slot::kCombIn,  Use::kYes, DtypeRule::kCoefficient,
    Layout::kSmall, 3,         {Dim::kTokens, Dim::kStreams, Dim::kStreams}};
inline constexpr TensorSpec kPreIn = {
    Slot::kPreIn, Use::kIfCarried, DtypeRule::kCoefficient, Layout::kSmall, 2, {Dim::kTokens, Dim::kStreams}};
inline constexpr TensorSpec kFn = {Slot::kFn,     Use::kYes, DtypeRule::kFp32,
                                   Layout::kWide, 2,         {Dim::kLogits, Dim::kFlat}};
inline constexpr TensorSpec kFnPacked = {
    Slot::kFnPacked, Use::kIfPacked, DtypeRule::kBytes, Layout::kSmall, 1, {Dim::kPackedBytes}};
inline constexpr TensorSpec kScale = {Slot::kScale,   Use::kYes, DtypeRule::kFp32,
                                      Layout::kSmall, 1,         {Dim::kThree}};
inline constexpr TensorSpec kBase = {Slot::kBase,    Use::kYes, DtypeRule::kFp32,
                                     Layout::kSmall, 1,         {Dim::kLogits}};
inline constexpr TensorSpec kNormWeight = {
    Slot::kNormWeight, Use::kIfNorm, DtypeRule::kNormWeight, Layout::kWide, 1, {Dim::kHidden}};
inline constexpr TensorSpec kResidualOut = {
    Slot::kResidualOut, Use::kYes, DtypeRule::kResidual,
    Layout::kWide,      3,         {Dim::kTokens, Dim::kStreams, Dim::kHidden}};
inline constexpr TensorSpec kLayerInput = {Slot::kLayerInput, Use::kYes, DtypeRule::kResidual,
                                           Layout::kWide,     2,         {Dim::kTokens, Dim::kHidden}};
inline constexpr TensorSpec kPostMix = {Slot::kPostMix, Use::kYes, DtypeRule::kCoefficient,
                                        Layout::kSmall, 2,         {Dim::kTokens, Dim::kStreams}};
inline constexpr TensorSpec kCombMix = {
    Slot::kCombMix, Use::kYes, DtypeRule::kCoefficient,
    Layout::kSmall, 3,         {Dim::kTokens, Dim::kStreams, Dim::kStreams}};
inline constexpr TensorSpec kPreMix = {Slot::kPreMix,
                                       Use::kIfCarriedElseMay,
                                       DtypeRule::kCoefficient,
                                       Layout::kSmall,
                                       2,
                                       {Dim::kTokens, Dim::kStreams}};

// The same row for another slot or shape.
constexpr TensorSpec with_dims(TensorSpec row, uint8_t rank, Dim first, Dim second = Dim::kNone,
                               Dim third = Dim::kNone) {
  row.rank = rank;
  row.dims[0] = first;
  row.dims[1] = second;
  row.dims[2] = third;
  return row;
}

}  // namespace rows
}  // namespace fmhc
