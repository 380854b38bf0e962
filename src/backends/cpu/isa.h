// The instruction sets of the cpu backend. Each is compiled once by Highway's target mechanism and is a set
// of kernel rows of its own; which one runs is the planner's choice by the target's feature bits, so that no
// SIMD library is needed at run time and each one can be asked for by name.
#pragma once

#include <cstdint>

#include "flashmhc/flashmhc.h"

// X(enumerator, Highway's namespace) for what this machine type compiles.
#if defined(__x86_64__)
#define FMHC_CPU_BUILT(X) X(kAvx3, N_AVX3) X(kAvx2, N_AVX2) X(kSse4, N_SSE4)
#elif defined(__aarch64__)
#define FMHC_CPU_BUILT(X) X(kNeon, N_NEON)
#else
#define FMHC_CPU_BUILT(X)
#endif

namespace fmhc::cpu {

enum class Isa : uint8_t { kAvx3, kAvx2, kSse4, kNeon };

constexpr bool is_built(Isa isa) {
#define FMHC_CPU_IS_BUILT(name, space) \
  if (isa == Isa::name) return true;
  FMHC_CPU_BUILT(FMHC_CPU_IS_BUILT)
#undef FMHC_CPU_IS_BUILT
  static_cast<void>(isa);
  return false;
}

struct IsaInfo {
  int32_t feature;        // fmhc_cpu_feature
  const char* text;       // what the feature is called in a refusal
  const char* not_built;  // the reason where this machine type does not compile it
  int32_t lanes;          // fp32 values of a vector
  double speed;           // fp32 arithmetic, relative to AVX-512
};

inline constexpr const char* kNotX86 = "not built: needs an x86-64 build";
inline constexpr const char* kNotArm = "not built: needs an aarch64 build";

constexpr IsaInfo info_of(Isa isa) {
  switch (isa) {
    case Isa::kAvx3:
      return {FMHC_CPU_AVX3, "AVX-512 F, BW, CD, DQ, VL", kNotX86, 16, 1};
    case Isa::kAvx2:
      return {FMHC_CPU_AVX2, "AVX2, FMA, F16C, BMI", kNotX86, 8, 0.5};
    case Isa::kSse4:
      return {FMHC_CPU_SSE4, "SSE4.2", kNotX86, 4, 0.15};
    case Isa::kNeon:
      return {FMHC_CPU_NEON, "NEON", kNotArm, 4, 0.25};
  }
  return {};
}

}  // namespace fmhc::cpu
