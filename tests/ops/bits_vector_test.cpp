// The conversions and the exponential of each Highway target against the scalar ones of core: every fp16,
// every bf16, ties, subnormals, NaN, and exp to 2 ulp. Compiled for all targets, run for those of this
// machine.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/ops/bits_vector_test.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fmhc::cpu::HWY_NAMESPACE {

// One vector each way; `lanes` values are read and written.
void narrow_bf16(const float* from, Bf16* to) {
  store(load(from), to);
}
void widen_bf16(const Bf16* from, float* to) {
  store(load(from), to);
}
void narrow_fp16(const float* from, Fp16* to) {
  store(load(from), to);
}
void widen_fp16(const Fp16* from, float* to) {
  store(load(from), to);
}
void narrow_half_by_bits(const float* from, Fp16* to) {
  store_u16(narrow_half_bits(load(from)), &to->bits);
}
void widen_half_by_bits(const Fp16* from, float* to) {
  store(widen_half_bits(load_u16(&from->bits)), to);
}
void exponential(const float* from, float* to) {
  store(exp(load(from)), to);
}
void gate(const float* from, float* to) {
  store(sigmoid(load(from)), to);
}
int32_t vector_lanes() {
  return static_cast<int32_t>(kLanes);
}

}  // namespace fmhc::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/isa.h"

namespace fmhc::cpu {
namespace {

template <typename From, typename To>
using Convert = void (*)(const From*, To*);

constexpr int kMaxTestLanes = 16;

struct Target {
  const char* name;
  int32_t feature;
  int32_t lanes;
  Convert<float, Bf16> narrow_bf16;
  Convert<Bf16, float> widen_bf16;
  Convert<float, Fp16> narrow_fp16[2];  // the instruction's and the bit form
  Convert<Fp16, float> widen_fp16[2];
  Convert<float, float> exponential, gate;
};

std::vector<Target> runnable() {
  std::vector<Target> list;
  fmhc_target machine{};
  machine.struct_size = sizeof machine;
  EXPECT_EQ(fmhc_target_query(FMHC_CPU, 0, &machine, nullptr), FMHC_OK);
#define FMHC_TEST_TARGET(isa, space)                                  \
  if ((machine.arch & info_of(Isa::isa).feature) != 0) {              \
    list.push_back({#space,                                           \
                    info_of(Isa::isa).feature,                        \
                    space::vector_lanes(),                            \
                    space::narrow_bf16,                               \
                    space::widen_bf16,                                \
                    {space::narrow_fp16, space::narrow_half_by_bits}, \
                    {space::widen_fp16, space::widen_half_by_bits},   \
                    space::exponential,                               \
                    space::gate});                                    \
  }
  FMHC_CPU_BUILT(FMHC_TEST_TARGET)
#undef FMHC_TEST_TARGET
  return list;
}

template <typename From, typename To>
To convert_one(Convert<From, To> convert, From value) {
  From from[kMaxTestLanes];
  To to[kMaxTestLanes];
  for (From& lane : from) lane = value;
  convert(from, to);
  return to[0];
}

bool both_nan(float a, float b) {
  return std::isnan(a) && std::isnan(b);
}

// Every 16-bit pattern, the midpoints above it and their neighbours, with both signs.
std::vector<float> probes(uint32_t step) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += step) {
    for (const int64_t nudge : {-1, 0, 1}) {
      values.push_back(std::bit_cast<float>(static_cast<uint32_t>(static_cast<int64_t>(bits) + nudge)));
    }
  }
  return values;
}

template <typename Storage>
int64_t check_narrow(Convert<float, Storage> convert, int32_t lanes, const std::vector<float>& values,
                     const char* name) {
  int64_t wrong = 0;
  Storage got[kMaxTestLanes];
  for (size_t i = 0; i + static_cast<size_t>(lanes) <= values.size(); i += static_cast<size_t>(lanes)) {
    convert(&values[i], got);
    for (size_t lane = 0; lane < static_cast<size_t>(lanes); ++lane) {
      const float value = values[i + lane];
      const Storage wanted = narrow<Storage>(static_cast<double>(value));
      if (got[lane].bits == wanted.bits || both_nan(widen(got[lane]), widen(wanted))) continue;
      if (++wrong <= 5) {
        ADD_FAILURE() << name << ": " << value << " became " << got[lane].bits << ", wanted " << wanted.bits;
      }
    }
  }
  return wrong;
}

TEST(BitsVector, Bf16RoundsToNearestEven) {
  ASSERT_FALSE(runnable().empty());
  const std::vector<float> values = probes(1U << 15);
  for (const Target& target : runnable()) {
    EXPECT_EQ(check_narrow(target.narrow_bf16, target.lanes, values, target.name), 0);
    for (uint32_t bits = 0; bits <= UINT16_MAX; ++bits) {
      const Bf16 stored{static_cast<uint16_t>(bits)};
      const float got = convert_one(target.widen_bf16, stored);
      ASSERT_EQ(std::bit_cast<uint32_t>(got), bits << 16) << target.name;
    }
  }
}

TEST(BitsVector, Fp16RoundsToNearestEven) {
  const std::vector<float> values = probes(1U << 12);
  for (const Target& target : runnable()) {
    for (const int form : {0, 1}) {
      EXPECT_EQ(check_narrow(target.narrow_fp16[form], target.lanes, values, target.name), 0) << form;
      for (uint32_t bits = 0; bits <= UINT16_MAX; ++bits) {
        const Fp16 stored{static_cast<uint16_t>(bits)};
        const float got = convert_one(target.widen_fp16[form], stored);
        const float wanted = widen(stored);
        ASSERT_TRUE(std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(wanted) || both_nan(got, wanted))
            << target.name << " form " << form << " bits " << bits << ": " << got << ", wanted " << wanted;
      }
    }
  }
}

TEST(BitsVector, ExponentialWithinTwoUlp) {
  for (const Target& target : runnable()) {
    double worst = 0;
    for (double x = -104; x < 88.7; x += 0.00137) {
      const auto argument = static_cast<float>(x);
      const double wanted = std::exp(static_cast<double>(argument));
      const double got = convert_one(target.exponential, argument);
      const double ulp = std::ldexp(1.0, std::max(std::ilogb(wanted), -126) - 23);
      worst = std::max(worst, std::fabs(got - wanted) / ulp);
    }
    std::printf("%s: exp within %.3f ulp\n", target.name, worst);
    EXPECT_LE(worst, 2.0) << target.name;
  }
}

TEST(BitsVector, ExtremesOfExpAndSigmoid) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Target& target : runnable()) {
    EXPECT_EQ(convert_one(target.exponential, -kInf), 0.0f);
    EXPECT_EQ(convert_one(target.exponential, kInf), kInf);
    EXPECT_EQ(convert_one(target.exponential, 0.0f), 1.0f);
    EXPECT_EQ(convert_one(target.exponential, 1e30f), kInf);
    EXPECT_EQ(convert_one(target.gate, -kInf), 0.0f);
    EXPECT_EQ(convert_one(target.gate, -200.0f), 0.0f);
    EXPECT_EQ(convert_one(target.gate, kInf), 1.0f);
    EXPECT_EQ(convert_one(target.gate, 0.0f), 0.5f);
    EXPECT_TRUE(std::isnan(convert_one(target.exponential, std::nanf(""))));
    EXPECT_TRUE(std::isnan(convert_one(target.gate, std::nanf(""))));
  }
}

}  // namespace
}  // namespace fmhc::cpu

#endif  // HWY_ONCE
