// Edges of every operator on every SIMD target: single entries of the mix, zero, tiny and huge streams, every
// split, guard words and unmapped pages around every tensor, and rows 2^30 elements apart.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "check/check.h"
#include "fuzz_call.h"
#include "fuzz_data.h"

namespace fmhc::ops_test {
namespace {

using check::Case;
using check::Tensors;
using check::Values;

constexpr int32_t kOps[] = {FMHC_EXPAND, FMHC_PROJECT, FMHC_FINISH, FMHC_PRE,
                            FMHC_POST,   FMHC_SEAM,    FMHC_HEAD,   FMHC_CONTRACT};
constexpr int32_t kDtypes[] = {FMHC_BF16, FMHC_FP16, FMHC_FP32};

Case make_case(int32_t op, int32_t dtype, int32_t streams, int64_t hidden, int64_t tokens) {
  Case call;
  call.problem = make_problem(op, streams, hidden, tokens);
  call.problem.residual_dtype = dtype;
  call.tokens = tokens;
  std::mt19937_64 random(static_cast<uint64_t>(op * 1000 + tokens));
  fill_inputs(Family::kNormal, 1, false, &random, &call);
  return call;
}

class Edges : public testing::TestWithParam<std::string> {
 protected:
  static Tensors run(const Case& call, Placement placement = {}) {
    placement.kernel = GetParam().c_str();
    const Outcome outcome = run_call(call, placement);
    EXPECT_EQ(outcome.code, FMHC_OK) << outcome.text;
    EXPECT_EQ(outcome.damage, "") << GetParam() << " op " << call.problem.op << " T " << call.tokens;
    return outcome.out;
  }

  static void expect_within(const Case& call, const Tensors& got, const std::string& what) {
    check::Options options;
    options.statistics = false;  // structured data
    const check::Report report = check::check_outputs(call, got, options);
    EXPECT_TRUE(report.passed()) << GetParam() << " " << what << ": " << report.text();
  }
};

TEST_P(Edges, SingleEntryOfTheMix) {
  constexpr int64_t kHidden = 37;
  for (const int32_t op : {FMHC_POST, FMHC_SEAM}) {
    for (int64_t entry = 0; entry < 16; ++entry) {
      Case call = make_case(op, FMHC_BF16, 4, kHidden, 3);
      std::fill(call.in.sublayer_output.begin(), call.in.sublayer_output.end(), 0.0);
      for (size_t i = 0; i < call.in.residual.size(); ++i) {
        call.in.residual[i] = static_cast<double>(static_cast<int64_t>(i) / kHidden % 4 + 1);
      }
      for (size_t i = 0; i < call.in.comb_in.size(); ++i) {
        call.in.comb_in[i] = static_cast<int64_t>(i) % 16 == entry ? 1.0 : 0.0;
      }
      const Values got = run(call).residual_out;
      for (size_t i = 0; i < got.size(); ++i) {
        const int64_t stream = static_cast<int64_t>(i) / kHidden % 4;
        const double wanted = stream == entry % 4 ? static_cast<double>(entry / 4 + 1) : 0.0;
        ASSERT_EQ(got[i], wanted) << GetParam() << " entry " << entry << " at " << i;
      }
    }
  }
}

// Inside the domain the bounds hold; outside it the other tokens keep their bits.
TEST_P(Edges, RangeOfTheStreams) {
  constexpr double kInside[] = {0.0, 1e-30, 1e15};
  constexpr double kOutside[] = {1e18, 1e20, 3e38};
  const auto with_middle = [](const Case& call, double value) {
    Case changed = call;
    const size_t width = call.in.residual.size() / 3;
    const double stored = value == 0.0 ? 0.0 : std::ldexp(1.0, std::ilogb(value));
    std::fill_n(changed.in.residual.begin() + static_cast<int64_t>(width), width, stored);
    return changed;
  };
  for (const int32_t op : {FMHC_PRE, FMHC_SEAM, FMHC_HEAD}) {
    const Case plain = make_case(op, FMHC_BF16, 4, 130, 3);
    const Tensors wanted = pick_outputs(plain, run(plain), {0, 2});
    for (const double value : kInside) {
      const Case call = with_middle(plain, value);
      expect_within(call, run(call), "streams of " + std::to_string(value));
    }
    for (const double value : kOutside) {
      const Case call = with_middle(plain, value);
      std::string where;
      EXPECT_TRUE(same_bits(pick_outputs(call, run(call), {0, 2}), wanted, &where)) << where;
    }
  }
}

TEST_P(Edges, ZeroTokenIsBaseAlone) {
  Case call = make_case(FMHC_PRE, FMHC_FP16, 4, 64, 2);
  std::fill(call.in.residual.begin(), call.in.residual.end(), 0.0);
  const Tensors got = run(call);
  for (size_t i = 0; i < 8; ++i) {
    const double pre = 1 / (1 + std::exp(-call.in.base[i % 4])) + 1e-6;
    const double post = 2 / (1 + std::exp(-call.in.base[4 + i % 4]));
    EXPECT_NEAR(got.pre_mix[i], pre, 3e-7);
    EXPECT_NEAR(got.post_mix[i], post, 6e-7);
  }
  for (const double value : got.layer_input) EXPECT_EQ(value, 0.0);
}

TEST_P(Edges, EverySplit) {
  int64_t compared = 0;
  for (const int64_t hidden : {int64_t{130}, int64_t{2048}}) {
    Case project = make_case(FMHC_PROJECT, FMHC_BF16, 4, hidden, 5);
    Case finish = make_case(FMHC_FINISH, FMHC_BF16, 4, hidden, 5);
    finish.in.residual = project.in.residual;
    Tensors unsplit;
    const int64_t most = (4 * hidden + 63) / 64;
    for (int64_t splits = 1; splits <= 112; splits = splits < 32    ? splits + 1
                                                     : splits == 32 ? 53
                                                                    : splits + 59) {
      project.splits = finish.splits = splits;
      if (splits > most) {
        EXPECT_EQ(run_call(project, {.kernel = GetParam().c_str()}).code, FMHC_INVALID) << splits;
        continue;
      }
      const Tensors sums = run(project, {.stride_seed = static_cast<uint64_t>(splits)});
      expect_within(project, sums, "splits " + std::to_string(splits));
      finish.in.dot_mix_in = sums.dot_mix;
      finish.in.sqrsum_in = sums.sqrsum;
      const Tensors got = run(finish);
      if (splits == 1) unsplit = got;
      for (size_t i = 0; i < got.comb_mix.size(); ++i)
        ASSERT_NEAR(got.comb_mix[i], unsplit.comb_mix[i], 1e-5);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 9 + 34);
}

TEST_P(Edges, GuardWordsAtEveryCount) {
  std::vector<int64_t> counts = {255, 256, 257, 1021};
  for (int64_t tokens = 1; tokens <= 130; ++tokens) counts.push_back(tokens);
  for (const int32_t op : kOps) {
    for (const int64_t tokens : counts) run(make_case(op, FMHC_BF16, 4, 9, tokens));
  }
}

// A read or a write past the last element of any tensor ends the process.
TEST_P(Edges, NothingPastTheEnd) {
  for (const int32_t op : kOps) {
    for (const int32_t dtype : kDtypes) {
      for (const int32_t streams : {1, 3, 4, 8}) {
        for (const int64_t hidden : {1, 2, 7, 15, 16, 17, 31, 33, 129, 511, 513}) {
          Case call = make_case(op, dtype, streams, hidden, 3);
          if (hidden % 2 == 1 && op == FMHC_CONTRACT) {
            call.problem.norm = FMHC_NORM_UNFUSED;
            call.problem.norm_weight_dtype = FMHC_BF16;
            call.in.norm_weight.assign(static_cast<size_t>(hidden), 1.0);
          }
          const Tensors packed = run(call);
          std::string where;
          EXPECT_TRUE(same_bits(run(call, {.at_page_end = true}), packed, &where)) << where;
        }
      }
    }
  }
}

// Three tokens, 2^30 elements from one to the next, in memory that is only reserved.
TEST_P(Edges, RowsFarApart) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer shadows the reserved range";
#endif
  constexpr int64_t kStride = (int64_t{1} << 30) + 3, kTokens = 3, kHidden = 70;
  constexpr size_t kBytes = (2 * static_cast<size_t>(kStride) + 4 * kHidden) * sizeof(float);
  for (const int32_t op : {FMHC_PROJECT, FMHC_PRE, FMHC_POST, FMHC_SEAM, FMHC_HEAD}) {
    const Case call = make_case(op, FMHC_FP32, 4, kHidden, kTokens);
    Placement placement;
    placement.residual_token_stride = kStride;
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    placement.residual_memory = memory;
    std::string where;
    EXPECT_TRUE(same_bits(run(call, placement), run(call), &where))
        << GetParam() << " op " << op << ": " << where;
    munmap(memory, kBytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Edges, testing::ValuesIn(runnable_targets()), [](const auto& target) {
  return std::string(target.param.substr(target.param.find('.') + 1));
});

}  // namespace
}  // namespace fmhc::ops_test
