// Geometry of the decode kernels, for host and device: S hidden slices x G token groups, one CTA each, and
// the sizes of the state through which they meet.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fmhc::cuda::decode {

inline constexpr int kMaxTokens = 64;
inline constexpr int kMaxSlices = 128;
inline constexpr int kMaxCtas =
    1024;  // words; far above any grid that can be resident at once with one CTA a unit
inline constexpr int kReplicas = 8;  // copies of the broadcast, so that polls spread over L2

// Kinds of records a (token, slice) has: 8 with three logits each, 4 with the square sum and the streams'
// Gram matrix, 1 with the exact square sum of the collapse where the Gram matrix cancels.
inline constexpr int kLogitKinds = 8;
inline constexpr int kGramKinds = 4;
inline constexpr int kExactKind = kLogitKinds + kGramKinds;
inline constexpr int kKinds = 16;  // padded: a (token, slice) fills two 128-byte lines
// Broadcast of a token: {pre0, pre1, pre2}, {pre3, norm scale, exact?}, {norm scale of the exact way}.
inline constexpr int kBroadcastKinds = 4;

inline constexpr int kRecordSlots = kMaxTokens * kMaxSlices * kKinds;
inline constexpr int kBroadcastSlots = kReplicas * kMaxTokens * kBroadcastKinds;
inline constexpr int kSlots = kRecordSlots + kBroadcastSlots;
inline constexpr int kChunkSlots = 256;  // retagged a launch
inline constexpr int kChunks = (kSlots + kChunkSlots - 1) / kChunkSlots;

inline constexpr size_t kRecordsOffset = kMaxCtas * sizeof(uint32_t);
inline constexpr size_t kBroadcastOffset = kRecordsOffset + size_t{16} * kRecordSlots;
inline constexpr size_t kStateBytes = kBroadcastOffset + size_t{16} * kBroadcastSlots;

}  // namespace fmhc::cuda::decode
