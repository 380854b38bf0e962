// Random calls: any operator with any legal option, most of them small. The index and the seed give the case.
#include <algorithm>

#include "tests.h"

namespace fmhc_gpu {
namespace {

class Dice {
 public:
  Dice(uint64_t seed, int64_t index) : key_(mix64(seed ^ mix64(static_cast<uint64_t>(index)))) {}

  int64_t below(int64_t count) {
    return static_cast<int64_t>(mix64(key_ + ++drawn_) % static_cast<uint64_t>(count));
  }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <size_t N>
  int64_t pick(const int64_t (&values)[N]) {
    return values[below(static_cast<int64_t>(N))];
  }

 private:
  uint64_t key_, drawn_ = 0;
};

constexpr int64_t kModelHidden[] = {4096, 5120, 7168};
constexpr int64_t kRoundHidden[] = {64,  128,  192,  250,  256,  320,  512,
                                    768, 1024, 1280, 1920, 2048, 2560, 4104};
constexpr int64_t kEdgeTokens[] = {7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257};
constexpr int64_t kMostElements = int64_t{40} << 20;

int64_t random_hidden(Dice* dice, bool cuda) {
  if (!cuda) return dice->chance(50) ? dice->between(1, 80) : 64 * dice->between(1, 4);
  const int64_t lot = dice->below(100);
  return lot < 25   ? dice->pick(kModelHidden)
         : lot < 60 ? dice->pick(kRoundHidden)
         : lot < 80 ? 64 * dice->between(1, 32)
                    : dice->between(1, 2100);
}

int64_t random_tokens(Dice* dice, bool cuda) {
  const int64_t lot = dice->below(100);
  if (lot < 2) return 0;
  if (!cuda) return dice->between(1, 20);
  return lot < 18 ? dice->between(65, 3000) : lot < 45 ? dice->pick(kEdgeTokens) : dice->between(1, 64);
}

// A promise that these strides and this address keep.
int32_t random_alignment(Dice* dice, const CaseSpec& spec) {
  const int64_t element = element_bytes(spec.problem.residual_dtype);
  int64_t align = dice->chance(60) ? 256 : int64_t{1} << dice->below(9);
  while (align > 1 &&
         ((spec.problem.hidden * element) % align != 0 || (spec.row_pad * element) % align != 0)) {
    align /= 2;
  }
  return align < element ? 0 : static_cast<int32_t>(align);
}

void random_options(Dice* dice, int32_t units, CaseSpec* spec) {
  fmhc_problem& p = spec->problem;
  const int64_t dtype = dice->below(100);
  p.residual_dtype = dtype < 60 ? FMHC_BF16 : dtype < 80 ? FMHC_FP16 : FMHC_FP32;
  p.streams = dice->chance(80) ? 4 : static_cast<int32_t>(dice->between(1, 8));
  if (projects(p.op))
    p.projection = dice->chance(10) ? FMHC_CLASS_R : dice->chance(50) ? FMHC_CLASS_F : FMHC_CLASS_F2;
  if (collapses(p.op)) p.norm = static_cast<int32_t>(dice->below(3));
  if (p.norm != FMHC_NORM_NONE) p.norm_weight_dtype = dice->chance(70) ? FMHC_BF16 : FMHC_FP32;
  if (may_carry(p.op)) p.carried_pre = dice->chance(30);
  p.batch_invariant = dice->chance(20);
  p.pdl = dice->chance(50);
  p.coresident_units = static_cast<int32_t>(dice->chance(40)   ? units
                                            : dice->chance(30) ? dice->between(0, units)
                                                               : 0);
  if (dice->chance(20)) p.consts.rms_eps = dice->chance(50) ? 1e-20f : 1e-5f;
  if (dice->chance(15)) p.consts.sinkhorn_iters = static_cast<int32_t>(dice->between(1, 30));
  if (dice->chance(10)) p.consts.post_mult = dice->chance(50) ? 1.0f : -1.5f;
  if (dice->chance(10)) p.consts.pre_eps = 0.01f;
  spec->pre_mix = p.op != FMHC_CONTRACT && dice->chance(50);
  spec->family = static_cast<Family>(dice->below(kFamilies));
  if (spec->family == Family::kNormal && dice->chance(10))
    p.consts.sinkhorn_eps = dice->chance(50) ? 0.0f : 1e-3f;
}

}  // namespace

CaseSpec make_case(int32_t op, int64_t hidden, int64_t tokens, uint64_t seed) {
  CaseSpec spec;
  spec.problem = make_problem(op, hidden, tokens);
  if (collapses(op)) {
    spec.problem.norm = FMHC_NORM_ENGINE;
    spec.problem.norm_weight_dtype = FMHC_BF16;
  }
  spec.problem.align_bytes = hidden * 2 % 16 == 0 ? 16 : 0;
  spec.tokens = tokens;
  spec.seed = seed;
  spec.given_splits = static_cast<int32_t>(std::clamp<int64_t>(flat_of(spec.problem) / 64, 1, 16));
  return spec;
}

CaseSpec random_case(uint64_t seed, int64_t index, bool cuda, int32_t units) {
  Dice dice(seed, index);
  CaseSpec spec;
  const auto op = static_cast<int32_t>(dice.between(FMHC_EXPAND, FMHC_CONTRACT));
  const int64_t hidden = random_hidden(&dice, cuda);
  int64_t tokens = random_tokens(&dice, cuda);
  spec.problem = make_problem(op, hidden, tokens);
  random_options(&dice, units, &spec);
  fmhc_problem& p = spec.problem;
  tokens = std::min(tokens, kMostElements / flat_of(p));
  spec.tokens = tokens;
  p.max_tokens = dice.chance(50) ? tokens : tokens + dice.between(0, 500);
  spec.seed = mix64(seed + static_cast<uint64_t>(index)) >> 20;
  p.strided = dice.chance(35);
  if (p.strided != 0) {
    spec.row_pad = dice.chance(70) ? dice.between(1, 40) * (dice.chance(50) ? 8 : 1) : 0;
    spec.broadcast = op != FMHC_EXPAND && dice.chance(20);
  }
  spec.in_place = (op == FMHC_POST || op == FMHC_SEAM) && !spec.broadcast && dice.chance(30);
  p.align_bytes = random_alignment(&dice, spec);
  const int64_t step = std::max<int64_t>(p.align_bytes, element_bytes(p.residual_dtype));
  spec.shift = dice.chance(40) ? step * dice.below(256 / step) : 0;
  const int64_t blocks = (flat_of(p) + 63) / 64;
  spec.given_splits = static_cast<int32_t>(dice.between(1, std::min<int64_t>(blocks, 40)));
  if (projects(op) && dice.chance(15))
    spec.split_k = static_cast<int32_t>(dice.between(1, std::min<int64_t>(blocks, 112)));
  return spec;
}

}  // namespace fmhc_gpu
