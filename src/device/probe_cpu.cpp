#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <thread>

#include "device/target.h"

namespace fmhc {
namespace {

#if defined(__x86_64__)

// Bit of ECX for the features that clang 14's __builtin_cpu_supports does not know by name. Whether the
// operating system keeps the wide registers is asked through a feature that it does know.
bool cpuid_ecx_bit(unsigned leaf, unsigned bit) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(leaf, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> bit & 1U) != 0;
}

bool has_f16c() {
  return cpuid_ecx_bit(1, 29);
}

bool has_lzcnt() {
  return cpuid_ecx_bit(0x80000001U, 5);
}

bool has_vaes() {
  return cpuid_ecx_bit(7, 9);
}

// __builtin_cpu_supports also asks the operating system for the register state.
int32_t cpu_features() {
  __builtin_cpu_init();
  int32_t features = 0;
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes")) {
    features |= FMHC_CPU_SSE4;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c() &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_lzcnt()) {
    features |= FMHC_CPU_AVX2;
  }
  if ((features & FMHC_CPU_AVX2) != 0 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    features |= FMHC_CPU_AVX3;
  }
  if ((features & FMHC_CPU_AVX3) != 0 && __builtin_cpu_supports("avx512vnni") &&
      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
      __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vpopcntdq") &&
      __builtin_cpu_supports("gfni") && has_vaes() && __builtin_cpu_supports("vpclmulqdq")) {
    features |= FMHC_CPU_AVX3_DL;
  }
  return features;
}

#elif defined(__aarch64__)

int32_t cpu_features() {
  return FMHC_CPU_NEON;
}

#else

int32_t cpu_features() {
  return 0;
}

#endif

constexpr int64_t kAssumedCacheBytes = 1 << 20;  // where the system does not say

}  // namespace

int32_t query_cpu(int32_t index, fmhc_target* out, fmhc_diag* diag) {
  if (index != 0) return fail(diag, FMHC_INVALID, "device_index is %d; the CPU has index 0", index);
  const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
  *out = {};
  out->struct_size = sizeof *out;
  out->device_kind = FMHC_CPU;
  out->arch = cpu_features();
  out->num_units = static_cast<int32_t>(std::thread::hardware_concurrency());
  if (out->num_units < 1) out->num_units = 1;
  out->cache_bytes = cache > 0 ? cache : kAssumedCacheBytes;
  return FMHC_OK;
}

}  // namespace fmhc
