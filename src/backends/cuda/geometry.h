// Grids and shared memory of the portable kernels, from sizes alone; tested without a GPU.
#pragma once

#include <cstdint>

#include "ops/op.h"

namespace fmhc::cuda {

// post: threads of a CTA and CTAs a token, for `vectors` 16-byte steps of a row.
struct PostShape {
  int32_t threads, tiles;
};
PostShape post_shape(int64_t tokens, int64_t vectors, int32_t units);

// finish: 16-byte steps of a thread as an index into 1, 2, 4 (-1: the row is too long), and collapsing warps.
// The norm's square sum follows the shape, so with `invariant` the shape does not follow the tokens.
struct FinishShape {
  int32_t index, warps;
};
FinishShape finish_shape(int64_t tokens, int64_t vectors, int32_t units, bool invariant);
inline constexpr int32_t kFinishVectors[] = {1, 2, 4};

// project and seam: CTAs (slices x groups), tokens of a group, groups of four warps, shared memory.
struct ProjectShape {
  int64_t groups, group_tokens;
  int32_t warp_rows;  // 16-token rows of a CTA, four warps each
  bool staged;        // the slice's fn is in shared memory
  size_t shared_bytes;
};
enum class ProjectKind : uint8_t { kProject, kHead, kSeam };
ProjectShape project_shape(ProjectKind kind, int32_t dtype, int64_t hidden, int64_t tokens, int32_t splits,
                           int32_t pieces, int32_t units, int64_t shared_limit);

// head in one launch: CTAs of a cluster (0: the row cannot be dealt out), threads of a CTA, clusters.
struct HeadShape {
  int32_t cluster, threads;
  int64_t clusters;
};
HeadShape head_shape(int64_t hidden, int64_t tokens, int32_t units);

// bf16 pieces of fn that meet the numerics class.
constexpr int32_t pieces_of(int32_t projection) {
  return projection == FMHC_CLASS_F ? 3 : 2;
}

// Tiles of eight logits.
constexpr int32_t tiles_of(ProjectKind kind) {
  return kind == ProjectKind::kHead ? 1 : 3;
}

}  // namespace fmhc::cuda
