// What family `decode` can do, and which configuration serves how many tokens.
#include "backends/cuda/decode/kernels.h"
#include "backends/cuda/decode/shape.h"
#include "backends/cuda/entries.h"
#include "core/status.h"

namespace fmhc::cuda {
namespace {

constexpr int32_t kMostCtas = 128;  // the largest grid of any configuration

struct Row {
  int64_t hidden;  // 0: any
  int32_t pdl;     // -1: either
  int64_t last_tokens;
  uint32_t config;  // index into decode::kConfigs
};

// The first row that fits. Measured on an H200 (132 multiprocessors, driver 580) with cold fn at H = 4096 and
// 7168: with programmatic launch the read of fn is hidden, so more groups, which read more of fn a CTA, pay.
constexpr Row kRows[] = {
    {0, -1, 1, 0},  {0, -1, 2, 1},    {0, -1, 4, 2},  {7168, 0, 8, 3},    {0, -1, 8, 4},  {4096, 1, 16, 8},
    {0, -1, 16, 5}, {4096, 1, 32, 9}, {0, -1, 32, 6}, {4096, -1, 64, 10}, {0, -1, 64, 7},
};

}  // namespace

int32_t fit_decode(const Problem& problem, const Target& target, fmhc_diag* why) {
  FMHC_TRY(fit_one_launch(problem, target, why));
  if (problem.coresident_units < kMostCtas || target.num_units < kMostCtas) {
    return fail(why, FMHC_UNSUPPORTED,
                "problem.coresident_units is %d and target.num_units %d; its grid of %d waits for itself",
                problem.coresident_units, target.num_units, kMostCtas);
  }
  return FMHC_OK;
}

uint32_t decode_config(const Problem& problem, const Target&, int64_t tokens) {
  for (const Row& row : kRows) {
    if ((row.hidden == 0 || row.hidden == problem.hidden) && (row.pdl < 0 || row.pdl == problem.pdl) &&
        tokens <= row.last_tokens) {
      return row.config;
    }
  }
  return 0;
}

size_t decode_state_bytes(const Problem&, const Target&) {
  return decode::kStateBytes;
}

}  // namespace fmhc::cuda
