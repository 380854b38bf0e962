// Bits of every operator on every SIMD target: a token's result depends on that token alone, whatever the
// count, place, neighbours and threads, and every form of a call gives the bits of the plain one.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <thread>

#include "fuzz_call.h"
#include "fuzz_data.h"

namespace fmhc::ops_test {
namespace {

using check::Case;
using check::Tensors;

constexpr int32_t kOps[] = {FMHC_EXPAND, FMHC_PROJECT, FMHC_FINISH, FMHC_PRE,
                            FMHC_POST,   FMHC_SEAM,    FMHC_HEAD,   FMHC_CONTRACT};
constexpr int64_t kCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000};
constexpr int64_t kHidden = 203;  // tails in every register width

// Threads made for the loop; indices dealt out in turn.
void parallel_for(void* ctx, int64_t count, void (*fn)(void* arg, int64_t i), void* arg) {
  const auto threads = *static_cast<const int32_t*>(ctx);
  std::vector<std::thread> pool;
  for (int32_t worker = 0; worker < threads; ++worker) {
    pool.emplace_back([=] {
      for (int64_t i = worker; i < count; i += threads) fn(arg, i);
    });
  }
  for (std::thread& thread : pool) thread.join();
}

Case make_case(int32_t op, int64_t tokens, int64_t hidden = kHidden, uint64_t seed = 1) {
  Case call;
  call.problem = make_problem(op, 4, hidden, tokens);
  call.tokens = tokens;
  const bool collapses = op != FMHC_EXPAND && op != FMHC_PROJECT && op != FMHC_POST;
  call.problem.norm = collapses ? FMHC_NORM_ENGINE : FMHC_NORM_NONE;
  call.problem.norm_weight_dtype = collapses ? FMHC_BF16 : 0;
  call.splits = op == FMHC_PROJECT || op == FMHC_FINISH ? 3 : 1;
  std::mt19937_64 random(seed + static_cast<uint64_t>(op));
  fill_inputs(Family::kLogNormal, 2, false, &random, &call);
  return call;
}

Tensors run(const Case& call, Placement placement, const std::string& target) {
  placement.kernel = target.c_str();
  Outcome outcome = run_call(call, placement);
  EXPECT_EQ(outcome.code, FMHC_OK) << target << ": " << outcome.text;
  EXPECT_EQ(outcome.damage, "") << target << " op " << call.problem.op;
  return outcome.out;
}

void expect_same(const Tensors& got, const Tensors& wanted, const std::string& what) {
  std::string where;
  EXPECT_TRUE(same_bits(got, wanted, &where)) << what << ": " << where;
}

class Bits : public testing::TestWithParam<std::string> {
 protected:
  static std::string name(int32_t op) { return GetParam() + " op " + std::to_string(op); }
};

TEST_P(Bits, CountAndPlace) {
  for (const int32_t op : kOps) {
    const Case all = make_case(op, 1000);
    const Tensors whole = run(all, {}, GetParam());
    for (const int64_t count : kCounts) {
      // A window from the end: every token stands at another place than in the whole.
      std::vector<int64_t> tokens(static_cast<size_t>(count));
      std::iota(tokens.begin(), tokens.end(), 1000 - count);
      const Tensors part = run(pick_tokens(all, tokens), {}, GetParam());
      expect_same(part, pick_outputs(all, whole, tokens), name(op) + " T " + std::to_string(count));
    }
  }
}

TEST_P(Bits, NeighboursWithNan) {
  for (const int32_t op : kOps) {
    for (const double poison :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 3e38}) {
      const Case clean = make_case(op, 37);
      Case dirty = clean;
      std::vector<int64_t> healthy;
      const int64_t width = static_cast<int64_t>(clean.in.residual.size()) / clean.tokens;
      for (int64_t t = 0; t < clean.tokens; ++t) {
        if (t % 3 != 1) {
          healthy.push_back(t);
        } else {
          std::fill_n(dirty.in.residual.begin() + t * width, width, poison);
        }
      }
      const Tensors wanted = pick_outputs(clean, run(clean, {}, GetParam()), healthy);
      const Tensors got = pick_outputs(dirty, run(dirty, {}, GetParam()), healthy);
      expect_same(got, wanted, name(op) + " beside " + std::to_string(poison));
    }
  }
}

TEST_P(Bits, Threads) {
  for (const int32_t op : kOps) {
    const Case call = make_case(op, 131);
    const Tensors serial = run(call, {}, GetParam());
    for (int32_t threads = 1; threads <= 3; ++threads) {
      fmhc_executor executor{&threads, threads, 0, parallel_for};
      expect_same(run(call, {.executor = &executor}, GetParam()), serial,
                  name(op) + " threads " + std::to_string(threads));
    }
  }
}

// Two halves of a fused operator, fed by hand.
Case half_of(const Case& fused, int32_t op, const check::Values& residual) {
  Case half = fused;
  half.problem.op = op;
  half.in.residual = residual;
  if (op == FMHC_POST || op == FMHC_PROJECT) {
    half.problem.norm = FMHC_NORM_NONE;
    half.problem.norm_weight_dtype = 0;
  }
  return half;
}

TEST_P(Bits, FusedIsComposed) {
  int64_t compared = 0;
  for (const int64_t hidden : {int64_t{33}, int64_t{96}}) {
    for (const int64_t tokens : {1, 31, 32, 33, 64, 1023, 1024, 1025, 2048}) {
      const Case seam = make_case(FMHC_SEAM, tokens, hidden);
      Tensors fused = run(seam, {}, GetParam());
      const Tensors mixed = run(half_of(seam, FMHC_POST, seam.in.residual), {}, GetParam());
      Case pre = half_of(seam, FMHC_PRE, mixed.residual_out);
      Tensors composed = run(pre, {}, GetParam());
      const Tensors sums = run(half_of(pre, FMHC_PROJECT, pre.in.residual), {}, GetParam());
      Case finish = half_of(pre, FMHC_FINISH, pre.in.residual);
      finish.in.dot_mix_in = sums.dot_mix;
      finish.in.sqrsum_in = sums.sqrsum;
      expect_same(run(finish, {}, GetParam()), composed, "finish of project, T " + std::to_string(tokens));
      composed.residual_out = mixed.residual_out;
      expect_same(fused, composed, "pre of post, T " + std::to_string(tokens));
      compared += 2;
    }
  }
  EXPECT_EQ(compared, 36);
}

TEST_P(Bits, Forms) {
  for (const int32_t op : kOps) {
    for (const int32_t dtype : {FMHC_BF16, FMHC_FP16, FMHC_FP32}) {
      Case call = make_case(op, 9);
      call.problem.residual_dtype = dtype;
      std::mt19937_64 random(7);
      const bool streams = op != FMHC_EXPAND;
      fill_inputs(Family::kNormal, 1, streams, &random, &call);
      const Tensors plain = run(call, {}, GetParam());
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        expect_same(run(call, {.stride_seed = seed}, GetParam()), plain, name(op) + " strided");
      }
      if (streams) expect_same(run(call, {.broadcast = true}, GetParam()), plain, name(op) + " broadcast");
      if (op == FMHC_POST || op == FMHC_SEAM) {
        expect_same(run(call, {.in_place = true}, GetParam()), plain, name(op) + " in place");
        expect_same(run(call, {.stride_seed = 5, .in_place = true}, GetParam()), plain,
                    name(op) + " strided in place");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Bits, testing::ValuesIn(runnable_targets()), [](const auto& target) {
  return std::string(target.param.substr(target.param.find('.') + 1));
});

TEST(BitsTargets, OneRuns) {
  EXPECT_FALSE(runnable_targets().empty());
}

}  // namespace
}  // namespace fmhc::ops_test
