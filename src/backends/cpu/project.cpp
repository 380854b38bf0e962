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

// A run of columns within one stream.
struct Run {
  int64_t stream, h, count;
};

Run run_at(const ProjectBlock& block, int64_t column, int64_t end) {
  const int64_t h = column % block.hidden;
  return {column / block.hidden, h, HWY_MIN(block.hidden - h, end - column)};
}

// Columns [begin, end) of one token's flattened streams on their way to the second-level cache while the leaf
// before them is multiplied: short runs of many tokens are what the hardware does not foresee.
template <typename S>
void fetch_leaf(const ProjectBlock& block, const S* token, int64_t begin, int64_t end) {
  constexpr int64_t kLine = 64 / sizeof(S);
  for (int64_t c = begin; c < end;) {
    const Run run = run_at(block, c, end);
    const S* from = token + run.stream * block.stream_stride + run.h;
    for (int64_t i = 0; i < run.count; i += kLine) __builtin_prefetch(from + i, 0, 2);
    c += run.count;
  }
}

// The same columns as fp32, then zeros to a whole vector.
template <typename S>
void widen_leaf(const ProjectBlock& block, const S* token, int64_t begin, int64_t end, float* to) {
  for (int64_t c = begin; c < end;) {
    const Run run = run_at(block, c, end);
    const S* from = token + run.stream * block.stream_stride + run.h;
    int64_t i = 0;
    for (; i + kLanes <= run.count; i += kLanes) store(load(from + i), to + i);
    if (i < run.count) store_first(load_first(from + i, run.count - i), to + i, run.count - i);
    to += run.count;
    c += run.count;
  }
  const int64_t filled = (end - begin) % kLanes;
  for (int64_t i = filled; filled != 0 && i < kLanes; ++i) *to++ = 0.0f;
}

// Four accumulators hide the latency of an addition.
void add_squares(const float* wide, int64_t columns, float* total) {
  constexpr int kChains = 4;
  V sums[kChains] = {hn::Zero(D()), hn::Zero(D()), hn::Zero(D()), hn::Zero(D())};
  int64_t c = 0;
  for (; c + (kChains - 1) * kLanes < columns; c += kChains * kLanes) {
    HWY_UNROLL(4)
    for (int i = 0; i < kChains; ++i) {
      const V x = load(wide + c + i * kLanes);
      sums[i] = hn::MulAdd(x, x, sums[i]);
    }
  }
  for (; c < columns; c += kLanes) {
    const V x = load(wide + c);
    sums[0] = hn::MulAdd(x, x, sums[0]);
  }
  add_leaf(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])), total);
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
        fetch_leaf(block, token, begin + columns, HWY_MIN(begin + columns + kLeaf, block.end));
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
