// The arithmetic of a site, for device and host: weight splitting, coefficients, Sinkhorn. Compiled for the
// CPU too, where tests compare it with the reference.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define FMHC_BOTH __host__ __device__ __forceinline__
#else
#define FMHC_BOTH inline
#endif
#if defined(__CUDA_ARCH__)
#define FMHC_UNROLL _Pragma("unroll")
#define FMHC_NO_UNROLL _Pragma("unroll 1")
#else
#define FMHC_UNROLL
#define FMHC_NO_UNROLL
#endif

namespace fmhc::cuda {

FMHC_BOTH uint32_t float_bits(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

FMHC_BOTH float bits_float(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

// bf16 nearest to `value`, as the upper half of a word. A finite value stays finite: near the end of the
// range it is cut instead of rounded, since an infinite piece would turn its remainder into NaN.
FMHC_BOTH uint32_t bf16_piece(float value) {
  const uint32_t bits = float_bits(value);
  const uint32_t exponent = bits & 0x7f800000u;
  if (exponent == 0x7f800000u) return (bits & 0x007fffffu) != 0 ? (bits | 0x00400000u) & 0xffff0000u : bits;
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  return (rounded & 0x7f800000u) == 0x7f800000u ? bits & 0xffff0000u : rounded;
}

// value = piece[0] + piece[1] + piece[2] exactly (24 bits of mantissa are three times eight); the first two
// alone keep 16 bits. Infinity and NaN sit in the first piece alone.
FMHC_BOTH void split_weight(float value, uint16_t (&piece)[3]) {
  float rest = value;
  for (int index = 0; index < 3; ++index) {
    const uint32_t bits = bf16_piece(rest);
    piece[index] = static_cast<uint16_t>(bits >> 16);
    if ((bits & 0x7f800000u) == 0x7f800000u) {
      rest = 0;
    } else {
      rest -= bits_float(bits);
    }
  }
}

FMHC_BOTH float reciprocal(float value) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
#else
  return 1.0f / value;
#endif
}

// Two ulp; no subroutine for the ends of the range, which no sum of a Sinkhorn reaches.
FMHC_BOTH float quotient(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdividef(a, b);
#else
  return a / b;
#endif
}

FMHC_BOTH float inverse_root(float value) {
#if defined(__CUDA_ARCH__)
  return rsqrtf(value);
#else
  return 1.0f / sqrtf(value);
#endif
}

FMHC_BOTH float sigmoid(float value) {
  return reciprocal(1.0f + expf(-value));
}

// logit = dot * rstd * scale + base.
FMHC_BOTH float logit_of(float dot, float rstd, float scale, float base) {
  return fmaf(dot * rstd, scale, base);
}

// Sinkhorn of a 4x4 matrix by scaling vectors: C[j][k] = A[j][k] / (w[j] x[k]). With eps a step is
// x' = A^T (1/w) + eps x, exact algebra. The four quotients share one reciprocal:
// sum_j a_j / w_j = (sum_j a_j prod_{i != j} w_i) / prod w, whose numerator runs beside it.
FMHC_BOTH void scaling_step(const float (&a)[4][4], const float (&w)[4], float eps, float (&x)[4]) {
  const float p = w[0] * w[1];
  const float q = w[2] * w[3];
  const float r = reciprocal(p * q);
  const float others[4] = {w[1] * q, w[0] * q, w[3] * p, w[2] * p};
  FMHC_UNROLL
  for (int k = 0; k < 4; ++k) {
    float sum = a[k][0] * others[0];
    FMHC_UNROLL
    for (int j = 1; j < 4; ++j) sum = fmaf(a[k][j], others[j], sum);
    x[k] = fmaf(r, sum, eps * x[k]);
  }
}

// For eps within kScalingEpsLeast..Most.
constexpr float kScalingEpsLeast = 1e-8f;
constexpr float kScalingEpsMost = 1e-2f;

// In: a[src][dst], exponentials with the row maximum subtracted. Out: a with eps, and the vectors of C = a /
// (w x).
FMHC_BOTH void scaling_vectors(float (&a)[4][4], int iterations, float eps, float (&w)[4], float (&x)[4]) {
  float t[4][4];
  FMHC_UNROLL
  for (int j = 0; j < 4; ++j) {
    x[j] = 1;
    // softmax + eps = (e + eps s) / s: the row sums start as w.
    w[j] = (a[j][0] + a[j][1]) + (a[j][2] + a[j][3]);
    FMHC_UNROLL
    for (int k = 0; k < 4; ++k) {
      a[j][k] = fmaf(eps, w[j], a[j][k]);
      t[k][j] = a[j][k];
    }
  }
  scaling_step(t, w, eps, x);
  FMHC_NO_UNROLL
  for (int step = 1; step < iterations; ++step) {
    scaling_step(a, x, eps, w);
    scaling_step(t, w, eps, x);
  }
}

// In: logits [src][dst]. Out: the mix.
FMHC_BOTH void sinkhorn_scaling(float (&c)[4][4], int iterations, float eps) {
  float w[4], x[4];
  FMHC_UNROLL
  for (int j = 0; j < 4; ++j) {
    const float most = fmaxf(fmaxf(c[j][0], c[j][1]), fmaxf(c[j][2], c[j][3]));
    FMHC_UNROLL
    for (int k = 0; k < 4; ++k) c[j][k] = expf(c[j][k] - most);
  }
  scaling_vectors(c, iterations, eps, w, x);
  FMHC_UNROLL
  for (int j = 0; j < 4; ++j) {
    const float row = reciprocal(w[j]);
    FMHC_UNROLL
    for (int k = 0; k < 4; ++k) c[j][k] *= row * reciprocal(x[k]);
  }
}

// The textbook form for any n up to 8 and any eps; rows and columns beyond n are never touched.
template <int kMax>
FMHC_BOTH void sinkhorn_plain(float (&c)[kMax][kMax], int n, int iterations, float eps) {
  for (int j = 0; j < n; ++j) {
    float most = c[j][0];
    for (int k = 1; k < n; ++k) most = fmaxf(most, c[j][k]);
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += c[j][k] = expf(c[j][k] - most);
    for (int k = 0; k < n; ++k) c[j][k] = quotient(c[j][k], sum) + eps;
  }
  for (int step = 0; step < iterations; ++step) {
    for (int j = 0; step > 0 && j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += c[j][k];
      for (int k = 0; k < n; ++k) c[j][k] = quotient(c[j][k], sum + eps);
    }
    for (int k = 0; k < n; ++k) {
      float sum = 0;
      for (int j = 0; j < n; ++j) sum += c[j][k];
      for (int j = 0; j < n; ++j) c[j][k] = quotient(c[j][k], sum + eps);
    }
  }
}

}  // namespace fmhc::cuda
