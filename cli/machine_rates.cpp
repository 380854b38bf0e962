#include "cli/machine_rates.h"

#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace fmhc::cli {
namespace {

constexpr int kChains = 12;  // independent additions in flight: latency times width of any core of today
constexpr int64_t kFmaRounds = 200'000;
constexpr int64_t kChunkBytes = 1 << 20;
constexpr int64_t kLeastCopy = 64 << 20, kMostCopy = 512 << 20, kQuickCopy = 128 << 20;

using FmaLoop = float (*)(int64_t rounds);

#if defined(__x86_64__)

__attribute__((target("avx512f"))) float fma_avx512(int64_t rounds) {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.0f);
  const __m512 factor = _mm512_set1_ps(0.999f);
  for (int64_t round = 0; round < rounds; ++round) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, factor);
  }
  float total = 0;
  for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx2,fma"))) float fma_avx2(int64_t rounds) {
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = _mm256_set1_ps(1.0f);
  const __m256 factor = _mm256_set1_ps(0.999f);
  for (int64_t round = 0; round < rounds; ++round) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, factor);
  }
  float total = 0;
  for (const __m256& sum : sums) total += _mm256_cvtss_f32(sum);
  return total;
}

float fma_sse(int64_t rounds) {
  __m128 sums[kChains];
  for (__m128& sum : sums) sum = _mm_set1_ps(1.0f);
  const __m128 factor = _mm_set1_ps(0.999f);
  for (int64_t round = 0; round < rounds; ++round) {
    for (__m128& sum : sums) sum = _mm_add_ps(_mm_mul_ps(sum, factor), factor);
  }
  float total = 0;
  for (const __m128& sum : sums) total += _mm_cvtss_f32(sum);
  return total;
}

FmaLoop fma_loop(int* lanes) {
  if (__builtin_cpu_supports("avx512f")) return *lanes = 16, fma_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return *lanes = 8, fma_avx2;
  return *lanes = 4, fma_sse;
}

#elif defined(__aarch64__)

float fma_neon(int64_t rounds) {
  float32x4_t sums[kChains];
  for (float32x4_t& sum : sums) sum = vdupq_n_f32(1.0f);
  const float32x4_t factor = vdupq_n_f32(0.999f);
  for (int64_t round = 0; round < rounds; ++round) {
    for (float32x4_t& sum : sums) sum = vfmaq_f32(factor, sum, factor);
  }
  float total = 0;
  for (const float32x4_t& sum : sums) total += vaddvq_f32(sum);
  return total;
}

FmaLoop fma_loop(int* lanes) {
  return *lanes = 4, fma_neon;
}

#endif

double microseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// The shortest of several runs: a peak is what the machine can do undisturbed.
template <typename Work>
double best_us(int runs, const Work& work) {
  double best = 0;
  for (int run = 0; run < runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const double us = microseconds(std::chrono::steady_clock::now() - begin);
    best = run == 0 ? us : std::min(best, us);
  }
  return best;
}

template <typename Body>
void parallel(const fmhc_executor& executor, int64_t count, Body body) {
  executor.parallel_for(
      executor.ctx, count, [](void* arg, int64_t i) { (*static_cast<Body*>(arg))(i); }, &body);
}

double measure_copy(const fmhc_executor& executor, int64_t most, int runs) {
  const int64_t wanted = std::clamp(4 * last_level_cache_bytes(), kLeastCopy, most);
  const int64_t bytes = wanted / kChunkBytes * kChunkBytes;
  const auto size = static_cast<size_t>(bytes);
  const std::unique_ptr<unsigned char[]> from(new unsigned char[size]), to(new unsigned char[size]);
  const auto each_chunk = [&](auto body) {
    parallel(executor, bytes / kChunkBytes, [&](int64_t i) { body(i * kChunkBytes); });
  };
  each_chunk([&](int64_t at) {
    std::memset(from.get() + at, 1, kChunkBytes);
    std::memset(to.get() + at, 2, kChunkBytes);
  });
  const double us = best_us(runs, [&] {
    each_chunk([&](int64_t at) { std::memcpy(to.get() + at, from.get() + at, kChunkBytes); });
  });
  return 2 * static_cast<double>(bytes) / us;
}

double measure_fma(const fmhc_executor& executor, int runs) {
  int lanes = 0;
  const FmaLoop loop = fma_loop(&lanes);
  std::vector<float> results(static_cast<size_t>(executor.threads));
  const double us = best_us(runs, [&] {
    parallel(executor, executor.threads,
             [&](int64_t i) { results[static_cast<size_t>(i)] = loop(kFmaRounds); });
  });
  // Keeps the loops from being removed: no result of theirs can be negative.
  if (*std::min_element(results.begin(), results.end()) < 0) return 0;
  return 2.0 * lanes * kChains * static_cast<double>(kFmaRounds) * executor.threads / us;
}

}  // namespace

MachineRates measure_rates(const fmhc_executor& executor, bool quick) {
  const int runs = quick ? 5 : 15;
  return {measure_copy(executor, quick ? kQuickCopy : kMostCopy, runs), measure_fma(executor, runs)};
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

int64_t last_level_cache_bytes() {
  constexpr int64_t kAssumed = 32 << 20;  // where the system does not say
#if defined(_SC_LEVEL3_CACHE_SIZE)
  const int64_t bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (bytes > 0) return bytes;
#endif
  return kAssumed;
}

}  // namespace fmhc::cli
