// Stage: dots of the streams with fn and their square sums, for a block of tokens. A leaf of columns is
// widened to fp32 once and stays in the first-level cache while all rows of fn pass; a register tile takes
// kTileTokens x kTileRows dots. Each dot has its own accumulator and visits its columns in order, so the
// shape of the tile does not show in the bits.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/project.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/stages.h"
#include "backends/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fmhc::cpu::HWY_NAMESPACE {
namespace {

inline constexpr int kTileRows = 6;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr int kTileTokens = 4;  // 24 accumulators of 32 registers
#else
inline constexpr int kTileTokens = 2;  // 12 of 16
#endif

HWY_INLINE void add_leaf(V sum, float* total) {
  if (mutant(Mutant::kPartialsInBf16)) sum = through_bf16(sum);
  store(hn::Add(load(total), sum), total);
}

struct Tile {
  const float* wide;  // [tokens, kWideStride], zero from `columns` to the next whole vector
  const float* fn;    // [rows, fn_stride]
  int64_t fn_stride, columns;
  float* totals;  // [tokens, totals_stride], a vector a row
  int64_t totals_stride;
};

template <int kTokens, int kRows, bool kTail>
HWY_INLINE void tile_step(const Tile& tile, int64_t c, V (&sums)[kTokens][kRows]) {
  V wide[kTokens];
  HWY_UNROLL(8)
  for (int t = 0; t < kTokens; ++t) wide[t] = load(tile.wide + t * kWideStride + c);
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    const int64_t left_out = mutant(Mutant::kTailUnmasked) ? 1 : 0;
    const V weight = load_columns<kTail>(tile.fn + r * tile.fn_stride + c, tile.columns - c - left_out);
    HWY_UNROLL(8)
    for (int t = 0; t < kTokens; ++t) sums[t][r] = hn::MulAdd(wide[t], weight, sums[t][r]);
  }
}

template <int kTokens, int kRows>
void run_tile(const Tile& tile) {
  V sums[kTokens][kRows];
  HWY_UNROLL(8)
  for (int t = 0; t < kTokens; ++t) {
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) sums[t][r] = hn::Zero(D());
  }
  int64_t c = 0;
  for (; c + kLanes <= tile.columns; c += kLanes) tile_step<kTokens, kRows, false>(tile, c, sums);
  if (c < tile.columns) tile_step<kTokens, kRows, true>(tile, c, sums);
  HWY_UNROLL(8)
  for (int t = 0; t < kTokens; ++t) {
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      float* total = tile.totals + t * tile.totals_stride + r * kMaxLanes;
      add_leaf(sums[t][r], total);
    }
  }
}

using RunTile = void (*)(const Tile&);

#define FMHC_TILES_OF(tokens)                                                                                \
  {                                                                                                          \
    run_tile<tokens, 1>, run_tile<tokens, 2>, run_tile<tokens, 3>, run_tile<tokens, 4>, run_tile<tokens, 5>, \
        run_tile<tokens, 6>                                                                                  \
  }
constexpr RunTile kTiles[kTileTokens][kTileRows] = {
    FMHC_TILES_OF(1),
    FMHC_TILES_OF(2),
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
    FMHC_TILES_OF(3),
    FMHC_TILES_OF(4),
#endif
};
#undef FMHC_TILES_OF

// Columns [begin, end) of one token's flattened streams as fp32, then zeros to a whole vector.
template <typename S>
void widen_leaf(const ProjectBlock& block, const S* token, int64_t begin, int64_t end, float* to) {
  int64_t stream = begin / block.hidden;
  int64_t h = begin % block.hidden;
  for (int64_t c = begin; c < end;) {
    const int64_t count = HWY_MIN(block.hidden - h, end - c);
    const S* from = token + stream * block.stream_stride + h;
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store(load(from + i), to + i);
    if (i < count) store_first(load_first(from + i, count - i), to + i, count - i);
    to += count;
    c += count;
    h = 0;
    ++stream;
  }
  const int64_t filled = (end - begin) % kLanes;
  for (int64_t i = filled; filled != 0 && i < kLanes; ++i) *to++ = 0.0f;
}

void add_squares(const float* wide, int64_t columns, float* total) {
  V sum = hn::Zero(D());
  for (int64_t c = 0; c < columns; c += kLanes) {
    const V x = load(wide + c);
    sum = hn::MulAdd(x, x, sum);
  }
  add_leaf(sum, total);
}

void multiply_leaf(const ProjectBlock& block, int64_t begin, int64_t columns, int32_t tokens, float* totals) {
  const int64_t totals_stride = int64_t{block.logits + 1} * kMaxLanes;
  for (int32_t row = 0; row < block.logits; row += kTileRows) {
    const int32_t rows = HWY_MIN(kTileRows, block.logits - row);
    for (int32_t t = 0; t < tokens; t += kTileTokens) {
      const int32_t width = HWY_MIN(kTileTokens, tokens - t);
      kTiles[width - 1][rows - 1]({block.wide + t * kWideStride, block.fn + row * block.fn_stride + begin,
                                   block.fn_stride, columns, totals + t * totals_stride + row * kMaxLanes,
                                   totals_stride});
    }
  }
}

template <typename S>
void accumulate(const ProjectBlock& block) {
  const int64_t totals_stride = int64_t{block.logits + 1} * kMaxLanes;
  const int64_t leaf = mutant(Mutant::kTreeFollowsTokens) && block.tokens > 8 ? kLeaf / 2 : kLeaf;
  for (int64_t begin = block.begin; begin < block.end; begin += leaf) {
    const int64_t columns = HWY_MIN(leaf, block.end - begin);
    for (int32_t first = 0; first < block.tokens; first += kSubTokens) {
      const int32_t tokens = HWY_MIN(kSubTokens, block.tokens - first);
      float* totals = block.totals + first * totals_stride;
      for (int32_t t = 0; t < tokens; ++t) {
        const S* token = static_cast<const S*>(block.residual) + (first + t) * block.token_stride;
        widen_leaf(block, token, begin, begin + columns, block.wide + t * kWideStride);
        if (mutant(Mutant::kSquaresOfOneStream) && begin >= block.hidden) continue;
        add_squares(block.wide + t * kWideStride, columns,
                    totals + t * totals_stride + block.logits * kMaxLanes);
      }
      multiply_leaf(block, begin, columns, tokens, totals);
      if (mutant(Mutant::kChunkTwice) && begin > block.begin) {
        multiply_leaf(block, begin, columns, tokens, totals);
      }
    }
  }
}

float sum_of(const float* total) {
  return hn::GetLane(hn::SumOfLanes(D(), load(total)));
}

float dot_of(const float* total) {
  return mutant(Mutant::kProjectionScaled) ? 1.5f * sum_of(total) : sum_of(total);
}

}  // namespace

void project(const ProjectBlock& block) {
  const int64_t totals_stride = int64_t{block.logits + 1} * kMaxLanes;
  std::memset(block.totals, 0, static_cast<size_t>(block.tokens * totals_stride) * sizeof(float));
  if (block.dtype == FMHC_BF16) {
    accumulate<Bf16>(block);
  } else if (block.dtype == FMHC_FP16) {
    accumulate<Fp16>(block);
  } else {
    accumulate<float>(block);
  }
  for (int32_t t = 0; t < block.tokens; ++t) {
    const float* totals = block.totals + t * totals_stride;
    float* dot = block.dot + t * block.dot_token_stride;
    for (int32_t o = 0; o < block.logits; ++o)
      dot[o * block.dot_logit_stride] = dot_of(totals + o * kMaxLanes);
    block.sqrsum[t * block.sqrsum_stride] = sum_of(totals + block.logits * kMaxLanes);
  }
}

}  // namespace fmhc::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
