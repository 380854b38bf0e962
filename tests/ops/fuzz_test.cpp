// Every SIMD target of `cpu` against `ref`, within the acceptance bounds, over random shapes, options,
// strides and data. Cases are numbered: the number alone makes the case. FMHC_FUZZ_CASES sets how many there
// are in all shards together, FMHC_FUZZ_ONLY runs one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "backends/cpu/stages.h"
#include "check/check.h"
#include "fuzz_call.h"
#include "fuzz_data.h"

namespace fmhc::ops_test {
namespace {

constexpr int64_t kShards = 4;
constexpr int32_t kOps[] = {FMHC_EXPAND, FMHC_PROJECT, FMHC_FINISH, FMHC_PRE,
                            FMHC_POST,   FMHC_SEAM,    FMHC_HEAD,   FMHC_CONTRACT};
constexpr int32_t kDtypes[] = {FMHC_BF16, FMHC_FP16, FMHC_FP32};
constexpr int64_t kMaxStreams = 8;
constexpr int64_t kCells = 8 * 3 * kMaxStreams;
constexpr int64_t kDefaultCases = kCells * kShards * 14;

struct Fuzz {
  check::Case call;
  Placement placement;
  Family family;
  double spread;
  bool statistics;
};

template <size_t N, typename T>
T choose(const T (&options)[N], std::mt19937_64* random) {
  return options[(*random)() % N];
}

int64_t log_uniform(int64_t low, int64_t high, std::mt19937_64* random) {
  std::uniform_real_distribution<double> exponent(std::log(static_cast<double>(low)),
                                                  std::log(static_cast<double>(high) + 1));
  return std::min(high, static_cast<int64_t>(std::exp(exponent(*random))));
}

// One case in 16 is wide, one in 8 long, the others are small.
void choose_shape(int64_t number, std::mt19937_64* random, check::Case* call) {
  constexpr int64_t kWide[] = {4096, 4104, 5120, 7168};
  const int64_t kind = (number / kCells + number % kCells) % 16;
  if (kind == 5) {
    call->problem.hidden = choose(kWide, random);
    call->tokens = 1 + static_cast<int64_t>((*random)() % 2);
  } else if (kind == 2 || kind == 11) {
    call->problem.hidden = log_uniform(1, 24, random);
    call->tokens = log_uniform(65, 140, random);
  } else {
    call->problem.hidden = log_uniform(1, 700, random);
    call->tokens = log_uniform(1, 64, random);
    if (call->problem.hidden > 100) call->tokens = std::min<int64_t>(call->tokens, 7);
  }
  call->problem.max_tokens = call->tokens + static_cast<int64_t>((*random)() % 3);
}

void choose_options(std::mt19937_64* random, check::Case* call) {
  constexpr int32_t kRounds[] = {1, 2, 20, 20, 20, 21};
  constexpr float kEps[] = {1e-6F, 1e-6F, 1e-3F};
  constexpr int32_t kWeights[] = {FMHC_BF16, FMHC_FP32};
  fmhc_problem& problem = call->problem;
  problem.consts.sinkhorn_iters = choose(kRounds, random);
  problem.consts.post_mult = (*random)() % 4 == 0 ? 1.0F : 2.0F;
  problem.consts.rms_eps = (*random)() % 3 == 0 ? 1e-20F : 1e-6F;
  problem.consts.pre_eps = choose(kEps, random);
  problem.consts.sinkhorn_eps = choose(kEps, random);
  problem.consts.norm_eps = choose(kEps, random);
  const bool collapses = problem.op != FMHC_EXPAND && problem.op != FMHC_PROJECT && problem.op != FMHC_POST;
  if (collapses) problem.norm = static_cast<int32_t>((*random)() % 3);
  if (problem.norm != FMHC_NORM_NONE) problem.norm_weight_dtype = choose(kWeights, random);
  if (collapses && problem.op != FMHC_HEAD) problem.carried_pre = static_cast<int32_t>((*random)() % 2);
  const int64_t blocks = (problem.hidden * problem.streams + 63) / 64;
  if (problem.op == FMHC_PROJECT || problem.op == FMHC_FINISH) {
    call->splits = log_uniform(1, std::min<int64_t>(blocks, 32), random);
  }
}

Fuzz make_fuzz(int64_t number) {
  std::mt19937_64 random(0x9e3779b97f4a7c15ULL ^ static_cast<uint64_t>(number));
  Fuzz fuzz{};
  const int64_t cell = number % kCells;
  const int32_t op = kOps[cell % 8];
  fuzz.call.problem = make_problem(op, static_cast<int32_t>(cell / 8 % kMaxStreams) + 1, 1, 1);
  fuzz.call.problem.residual_dtype = kDtypes[cell / 8 / kMaxStreams];
  choose_shape(number, &random, &fuzz.call);
  choose_options(&random, &fuzz.call);
  const bool updates = op == FMHC_POST || op == FMHC_SEAM;
  fuzz.placement.stride_seed = random() % 2 == 0 ? 0 : random() | 1;
  fuzz.placement.broadcast = op != FMHC_EXPAND && fuzz.call.problem.streams > 1 && random() % 8 == 0;
  fuzz.placement.in_place = updates && !fuzz.placement.broadcast && random() % 3 == 0;
  fuzz.spread = random() % 3 == 0 ? 4 : 1;
  fuzz.family = choose(kFamilies, &random);
  // Behind an inner rounding a single tie outweighs all other errors where few elements are large.
  const bool many = fuzz.call.tokens * fuzz.call.problem.hidden >= check::kFewestForRatio;
  const bool even = many && fuzz.family == Family::kNormal;
  fuzz.statistics = !fuzz.placement.broadcast && (even || fuzz.call.problem.norm == FMHC_NORM_NONE);
  return fuzz;
}

void fill(int64_t number, Fuzz* fuzz) {
  std::mt19937_64 random(static_cast<uint64_t>(number));
  fill_inputs(fuzz->family, fuzz->spread, fuzz->placement.broadcast, &random, &fuzz->call);
}

std::string describe(int64_t number, const Fuzz& fuzz) {
  const fmhc_problem& p = fuzz.call.problem;
  char text[320];
  std::snprintf(text, sizeof text,
                "FMHC_FUZZ_ONLY=%lld: op %d dtype %d streams %d hidden %lld tokens %lld splits %lld norm %d "
                "carried %d spread %g family %d%s%s%s",
                static_cast<long long>(number), p.op, p.residual_dtype, p.streams,
                static_cast<long long>(p.hidden), static_cast<long long>(fuzz.call.tokens),
                static_cast<long long>(fuzz.call.splits), p.norm, p.carried_pre, fuzz.spread,
                static_cast<int>(fuzz.family), fuzz.placement.stride_seed != 0 ? " strided" : "",
                fuzz.placement.in_place ? " in place" : "", fuzz.placement.broadcast ? " broadcast" : "");
  return text;
}

struct Target {
  std::string prefix;
  int64_t lanes;
};

std::vector<Target> targets() {
  std::vector<Target> list;
  for (const std::string& prefix : runnable_targets()) {
    const int64_t lanes = prefix == "cpu.avx3" ? 16 : prefix == "cpu.avx2" ? 8 : 4;
    list.push_back({prefix, lanes});
  }
  return list;
}

// Largest error over bound, by output.
using Worst = std::map<std::string, double>;

bool run_fuzz(int64_t number, const std::vector<Target>& list, Worst* worst) {
  Fuzz fuzz = make_fuzz(number);
  fill(number, &fuzz);
  bool passed = true;
  for (const Target& target : list) {
    fuzz.placement.kernel = target.prefix.c_str();
    const Outcome outcome = run_call(fuzz.call, fuzz.placement);
    const auto complain = [&](const std::string& what) {
      ADD_FAILURE() << target.prefix << " " << describe(number, fuzz) << "\n" << what;
      passed = false;
    };
    if (outcome.code != FMHC_OK) {
      complain(outcome.text);
      continue;
    }
    if (!outcome.damage.empty()) complain("bytes changed outside " + outcome.damage);
    check::Options options;
    options.statistics = fuzz.statistics;
    const int64_t width = fuzz.call.problem.hidden * fuzz.call.problem.streams;
    options.arithmetic.chain = cpu::longest_chain(width, target.lanes);
    const check::Report report = check::check_outputs(fuzz.call, outcome.out, options);
    if (!report.passed()) complain(report.text());
    for (const check::TensorReport& tensor : report.tensors) {
      double& ratio = (*worst)[tensor.tensor];
      ratio = std::max(ratio, tensor.ratio);
    }
  }
  return passed;
}

struct Histogram {
  int64_t cells[kCells] = {};
  int64_t cases = 0, wide = 0, lengthy = 0;

  void add(int64_t number) {
    const Fuzz fuzz = make_fuzz(number);
    ++cells[number % kCells];
    ++cases;
    wide += fuzz.call.problem.hidden >= 4096;
    lengthy += fuzz.call.tokens > 64;
  }

  void print() const {
    std::printf("cases by streams 1..8:\n");
    for (int64_t op = 0; op < 8; ++op) {
      for (int64_t dtype = 0; dtype < 3; ++dtype) {
        std::printf("  op %d dtype %d:", kOps[op], kDtypes[dtype]);
        for (int64_t n = 0; n < kMaxStreams; ++n) {
          std::printf(" %lld", static_cast<long long>(cells[(dtype * kMaxStreams + n) * 8 + op]));
        }
        std::printf("\n");
      }
    }
    std::printf("hidden >= 4096: %lld of %lld; tokens > 64: %lld\n", static_cast<long long>(wide),
                static_cast<long long>(cases), static_cast<long long>(lengthy));
  }
};

int64_t all_cases() {
  const char* given = std::getenv("FMHC_FUZZ_CASES");
  const int64_t asked = given != nullptr ? std::atoll(given) : kDefaultCases;
  // Whole rounds over the cells, the same for every shard.
  return std::max<int64_t>(asked / (kCells * kShards), 1) * kCells * kShards;
}

class FuzzShard : public testing::TestWithParam<int64_t> {};

TEST_P(FuzzShard, CpuAgreesWithRef) {
  const std::vector<Target> list = targets();
  ASSERT_FALSE(list.empty());
  Worst worst;
  if (const char* only = std::getenv("FMHC_FUZZ_ONLY")) {
    run_fuzz(std::atoll(only), list, &worst);
    return;
  }
  Histogram histogram;
  int64_t failures = 0;
  for (int64_t round = GetParam(); round < all_cases() / kCells && failures < 20; round += kShards) {
    for (int64_t number = round * kCells; number < (round + 1) * kCells && failures < 20; ++number) {
      histogram.add(number);
      failures += !run_fuzz(number, list, &worst);
    }
  }
  histogram.print();
  for (const auto& [tensor, ratio] : worst) {
    std::printf("worst error / bound of %s: %.3f\n", tensor.c_str(), ratio);
  }
  EXPECT_EQ(histogram.cases, all_cases() / kShards);
}

INSTANTIATE_TEST_SUITE_P(Ops, FuzzShard, testing::Range<int64_t>(0, kShards));

TEST(FuzzPlan, CoversEveryCell) {
  Histogram histogram;
  for (int64_t number = 0; number < kDefaultCases; ++number) histogram.add(number);
  histogram.print();
  EXPECT_GE(histogram.cases, 10000);
  EXPECT_GE(*std::min_element(std::begin(histogram.cells), std::end(histogram.cells)), 50);
  EXPECT_GE(histogram.wide * 20, histogram.cases);
  EXPECT_GE(histogram.lengthy * 10, histogram.cases);
}

}  // namespace
}  // namespace fmhc::ops_test
