#include <unistd.h>

#include <thread>

#include "device/target.h"

namespace fmhc {
namespace {

#if defined(__x86_64__)

// __builtin_cpu_supports also asks the operating system for the register state.
int32_t cpu_features() {
  __builtin_cpu_init();
  int32_t features = 0;
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes")) {
    features |= FMHC_CPU_SSE4;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt")) {
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
      __builtin_cpu_supports("gfni") && __builtin_cpu_supports("vaes") &&
      __builtin_cpu_supports("vpclmulqdq")) {
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
