#include "backends/cuda/geometry.h"

#include <algorithm>

#include "core/math.h"

namespace fmhc::cuda {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kTokenRow = 16;  // tokens of a tensor core fragment
constexpr int64_t kQuarters = 4;   // warps that share a row's slice
constexpr int64_t kMixBytes = kTokenRow * 20 * 4;

// What the launch bounds of the kernels allow: rows of 16 tokens, four warps each.
int64_t most_rows(ProjectKind kind, int32_t dtype, bool staged) {
  if (!staged || dtype != FMHC_BF16) return 2;
  return kind == ProjectKind::kSeam ? 3 : 4;
}

// Packed fn of the longest slice.
int64_t slice_bytes(ProjectKind kind, int64_t hidden, int32_t splits, int32_t pieces) {
  const int64_t block_bytes = int64_t{512} * pieces * tiles_of(kind);  // of 32 columns
  return kind == ProjectKind::kSeam ? 4 * ceil_div(hidden / 32, splits) * block_bytes
                                    : 2 * ceil_div(hidden / 64 * 4, splits) * block_bytes;
}

}  // namespace

PostShape post_shape(int64_t tokens, int64_t vectors, int32_t units) {
  // The largest CTA that still gives every multiprocessor two of them; at most eight warps, and without idle
  // warps at the end of a row where a divisor allows it.
  const int64_t warps_a_row = ceil_div(vectors, kWarp);
  int64_t warps = 8;
  while (warps > 1 && tokens * ceil_div(warps_a_row, warps) < int64_t{2} * units) warps /= 2;
  for (int64_t other = warps; warps == 8 && other >= 5; --other) {
    if (warps_a_row % other == 0) {
      warps = other;
      break;
    }
  }
  return {static_cast<int32_t>(warps * kWarp), static_cast<int32_t>(ceil_div(warps_a_row, warps))};
}

FinishShape finish_shape(int64_t tokens, int64_t vectors, int32_t units, bool invariant) {
  // One step a thread while every token has a multiprocessor of its own: latency counts. Beyond that fewer,
  // longer threads, so that two or three tokens share one.
  struct Choice {
    int32_t index;
    int64_t most_warps;  // beside the one of the Sinkhorn
  };
  constexpr Choice kLatency[] = {{0, 31}, {2, 15}};
  constexpr Choice kThroughput[] = {{1, 10}, {2, 15}};
  const bool spread = tokens <= units && !invariant;
  for (const Choice& choice : spread ? kLatency : kThroughput) {
    const int64_t warps = ceil_div(ceil_div(vectors, kFinishVectors[choice.index]), kWarp);
    if (warps <= choice.most_warps) return {choice.index, static_cast<int32_t>(warps)};
  }
  return {-1, 0};
}

ProjectShape project_shape(ProjectKind kind, int32_t dtype, int64_t hidden, int64_t tokens, int32_t splits,
                           int32_t pieces, int32_t units, int64_t shared_limit) {
  const int64_t wanted = std::clamp<int64_t>(units / splits, 1, ceil_div(tokens, kTokenRow));
  ProjectShape shape{};
  shape.group_tokens = round_up(ceil_div(tokens, wanted), kTokenRow);
  shape.groups = ceil_div(tokens, shape.group_tokens);
  const int64_t slice = slice_bytes(kind, hidden, splits, pieces);
  const int64_t row_bytes = 2 * kQuarters * kTokenRow * (tiles_of(kind) * 8 + 2) * 4 +
                            (kind == ProjectKind::kSeam ? kQuarters * kMixBytes : 0);
  for (const bool staged : {true, false}) {
    const int64_t rows = min64(most_rows(kind, dtype, staged), shape.group_tokens / kTokenRow);
    const int64_t bytes = rows * row_bytes + (staged ? slice : 0);
    shape.warp_rows = static_cast<int32_t>(rows);
    shape.staged = staged;
    shape.shared_bytes = static_cast<size_t>(bytes);
    if (bytes <= shared_limit) break;
  }
  return shape;
}

HeadShape head_shape(int64_t hidden, int64_t tokens, int32_t units) {
  constexpr int64_t kColumns = 2;  // of a thread, in every stream
  constexpr int64_t kMostThreads = 512;
  constexpr int64_t kBatch = 4;  // tokens
  for (const int64_t cluster : {1, 2, 4, 8}) {
    const int64_t threads = hidden / cluster / kColumns;
    if (threads > kMostThreads || hidden % (cluster * kColumns * kWarp) != 0) continue;
    // Clusters of four and eight leave a part of the multiprocessors over: 120 of the 132 of an H200 hold
    // them.
    const int64_t usable = cluster <= 2 ? units : int64_t{units} * 10 / 11;
    return {static_cast<int32_t>(cluster), static_cast<int32_t>(threads),
            std::clamp<int64_t>(usable / cluster, 1, max64(ceil_div(tokens, kBatch), 1))};
  }
  return {0, 0, 0};
}

}  // namespace fmhc::cuda
