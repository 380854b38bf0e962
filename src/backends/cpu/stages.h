// The stages that every operator of this backend is made of, one table of functions for each instruction set.
// An operator and the fused form that contains it run the same stages over the same tokens, so they agree bit
// for bit; nothing in a stage depends on the number of tokens, their place or their neighbours.
// Arithmetic is fp32. Sums run over fixed leaves of columns: a fresh vector accumulator for each leaf, leaf
// vectors added in ascending order, lanes last.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace fmhc::cpu {

inline constexpr int64_t kLeaf = 512;        // columns of a leaf
inline constexpr int32_t kBlockTokens = 32;  // most tokens of a block; the row length of its small arrays
inline constexpr int32_t kSubTokens = 16;    // tokens whose widened leaf stays in the first-level cache
inline constexpr int64_t kWideStride = kLeaf + 16;  // floats between widened rows: off the cache's aliasing
inline constexpr int32_t kMaxLanes = 16;
inline constexpr int32_t kMaxStreams = 8;
inline constexpr int32_t kMaxLogits = kMaxStreams * (2 + kMaxStreams);

// The longest chain of additions behind one element of dot_mix or sqrsum: a leaf's steps in one lane, the
// leaves, the tree over lanes. `lanes` is the width of the instruction set, `columns` the length of a slice.
constexpr int64_t longest_chain(int64_t columns, int64_t lanes) {
  int64_t tree = 0;
  while ((int64_t{1} << tree) < lanes) ++tree;
  const int64_t leaf = columns < kLeaf ? columns : kLeaf;
  constexpr int64_t kSquares = 2;  // the four accumulators of a square sum
  return (leaf + lanes - 1) / lanes + kSquares + (columns + kLeaf - 1) / kLeaf + tree;
}

// One token of `post`. Offsets count elements of `dtype`.
struct MixRow {
  int32_t dtype, streams;
  int64_t hidden;
  const void* residual;  // [streams, hidden] of dtype
  int64_t stream_stride;
  const void* sublayer_output;  // [hidden] of dtype
  const float* comb;            // [streams, streams], row = source
  const float* post;            // [streams]
  void* out;                    // [streams, hidden] of dtype; may be `residual` with equal strides
  int64_t out_stream_stride;
};

// One token's layer input: the weighted sum of its streams over `divisor` (1, or the streams of a mean: their
// reciprocal would round), and the RMSNorm.
struct CollapseRow {
  int32_t dtype, streams, norm;
  float divisor;
  float norm_eps;
  int64_t hidden;
  const void* residual;  // [streams, hidden] of dtype
  int64_t stream_stride;
  const float* weights;      // [streams]
  const float* norm_weight;  // [hidden]; unused without a norm
  void* out;                 // [hidden] of dtype
};

// Dots and square sums of a block of tokens over the columns [begin, end) of K = streams * hidden.
struct ProjectBlock {
  int32_t dtype, streams, tokens, logits;
  int64_t hidden, begin, end;
  const void* residual;  // [tokens, streams, hidden] of dtype
  int64_t token_stride, stream_stride;
  const float* fn;  // [logits, K]
  int64_t fn_stride;
  float* wide;    // [kSubTokens, kWideStride], work
  float* totals;  // [tokens, logits + 1, kMaxLanes], work
  float* dot;     // [tokens, logits] by the two strides
  int64_t dot_token_stride, dot_logit_stride;
  float* sqrsum;  // [tokens]
  int64_t sqrsum_stride;
};

// Coefficients of a block. Every array has rows of kBlockTokens, one column a token; all columns are
// computed, those past `tokens` hold no meaning.
struct CoefficientBlock {
  int32_t tokens, streams;
  bool head;            // pre alone
  const float* dot;     // [logits, kBlockTokens]
  const float* sqrsum;  // [kBlockTokens]
  float scale[3];
  const float* base;  // [logits]
  float width;        // K
  fmhc_consts consts;
  float* pre;   // [streams, kBlockTokens]
  float* post;  // [streams, kBlockTokens]
  float* comb;  // [streams * streams, kBlockTokens]
};

struct Stages {
  void (*mix)(const MixRow&);
  void (*collapse)(const CollapseRow&);
  void (*project)(const ProjectBlock&);
  void (*coefficients)(const CoefficientBlock&);
};

// The isa must be built.
const Stages& stages_of(Isa isa);

#define FMHC_CPU_DECLARE(name, space)               \
  namespace space {                                 \
  void mix(const MixRow& row);                      \
  void collapse(const CollapseRow& row);            \
  void project(const ProjectBlock& block);          \
  void coefficients(const CoefficientBlock& block); \
  }
FMHC_CPU_BUILT(FMHC_CPU_DECLARE)
#undef FMHC_CPU_DECLARE

}  // namespace fmhc::cpu
