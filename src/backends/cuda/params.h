// What kernels take, as plain structs that host and device share. Strides count elements; token counts and
// offsets are 64-bit everywhere, since a residual may pass 2^31 elements.
#pragma once

#include <cstdint>

namespace fmhc::cuda {

// [T, n, H], [T, H] and the like: the last axis has stride 1.
struct WideIn {
  const void* data;
  int64_t token, stream;
};
struct WideOut {
  void* data;
  int64_t token, stream;
};

// fp32 with any strides: [T], [T, n] or [T, n, n].
struct SmallIn {
  const float* data;
  int64_t stride[3];
};
struct SmallOut {
  float* data;
  int64_t stride[3];
};

// Partial sums of the projection: dot [S, T, N] and square sums [S, T], fp32. The last axis of dot has
// stride 1.
struct Partials {
  float* dot;
  float* square;
  int64_t dot_split, dot_token;
  int64_t square_split, square_token;
};

struct ExpandParams {
  const void* in;  // [T, H] in units
  void* out;       // [T, n, H] in units
  int64_t in_token, out_token, out_stream;
  int64_t tokens, width;  // units a row
  int32_t streams;
};

struct PostParams {
  WideIn residual;         // [T, n, H]
  WideIn sublayer_output;  // [T, H]
  WideOut residual_out;    // [T, n, H]
  SmallIn post;            // [T, n]
  SmallIn comb;            // [T, src, dst]
  int64_t tokens, hidden;
  int32_t streams;
  int32_t tiles;       // CTAs a token
  int32_t packed_mix;  // post and comb are packed and 16-byte aligned
};

struct ProjectParams {
  WideIn residual;  // [T, n, H]
  const float* fn;  // [N, K] fp32; generic kernels
  int64_t fn_row;
  const void* packed;  // as pack_kernel wrote it; tensor core kernels
  Partials out;
  int64_t tokens, hidden;
  int64_t group_tokens;  // tokens of one CTA row of the grid
  int32_t streams, logits, splits;
  int32_t trigger_late;  // let the dependent grid start only when the streams are known to be complete
};

struct SeamParams {
  PostParams post;
  ProjectParams project;
};

struct PackParams {
  const float* fn;  // [N, K] fp32
  int64_t fn_row;
  void* packed;
  int64_t flat;
  int32_t logits, pieces, tiles;
};

inline constexpr int kMostGroups = 32;  // of slices in finish

enum FinishMode : int32_t { kFinishSite = 0, kFinishHead = 1, kFinishMean = 2, kFinishCarried = 3 };

// Coefficients from partial sums (site, head), then the collapse; mean and carried have no partial sums.
struct FinishParams {
  Partials in;
  WideIn residual;          // [T, n, H]
  SmallIn scale;            // [3], head [1]
  SmallIn base;             // [N]
  SmallIn pre_in;           // [T, n] or null
  WideOut layer_input;      // [T, H]
  SmallOut post_mix;        // [T, n]
  SmallOut comb_mix;        // [T, n, n]
  SmallOut pre_mix;         // [T, n] or null
  const void* norm_weight;  // [H] bf16 or fp32
  int64_t norm_stride;
  int64_t tokens, hidden;
  int32_t streams, logits, splits, mode;
  int32_t norm, norm_weight_bf16, norm_weight_vector;
  int32_t iterations;
  // The grid walks groups of tokens backwards, all groups at once: what the kernel before visited last is in
  // L2 still.
  int64_t group_tokens;  // 0: tokens in order
  int32_t token_groups;
  int32_t residual_ready;        // the streams were complete before the grid that this one waits for began
  int32_t group_slices, groups;  // slices are added in groups of this many, then the groups
  float inverse_flat, inverse_hidden;
  float rms_eps, pre_eps, sinkhorn_eps, post_mult, norm_eps;
};

struct HeadParams {
  WideIn residual;  // [T, 4, H] bf16
  const float* fn;  // [4, 4 H] fp32
  int64_t fn_row;
  SmallIn scale;        // [1]
  SmallIn base;         // [4]
  WideOut layer_input;  // [T, H]
  SmallOut pre_mix;     // [T, 4] or null
  int64_t tokens, hidden;
  float inverse_flat;
  int32_t fn_pairs;  // rows of fn are 8-byte aligned
  float rms_eps, pre_eps;
};

}  // namespace fmhc::cuda
