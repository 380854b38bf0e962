// Vectors of fp32 for one Highway target: loads and stores of the storage types, tails, exp.
// Narrowing rounds to nearest, ties to even, keeps subnormals and NaN: the packaged Highway truncates bf16.
// A tail never touches memory past its last element.
#if defined(FMHC_CPU_VECTOR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FMHC_CPU_VECTOR_INL_H
#undef FMHC_CPU_VECTOR_INL_H
#else
#define FMHC_CPU_VECTOR_INL_H
#endif

#include <hwy/highway.h>

#include <cstring>

#include "core/dtype.h"
#include "core/mutant.h"

HWY_BEFORE_NAMESPACE();
namespace fmhc::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<uint32_t>;
using U16 = hn::Rebind<uint16_t, D>;
using V = hn::Vec<D>;
using VU32 = hn::Vec<U32>;

inline constexpr int64_t kLanes = HWY_LANES(float);

#if HWY_TARGET == HWY_SSE4
inline constexpr bool kNativeHalf = false;
#else
inline constexpr bool kNativeHalf = true;
#endif

HWY_INLINE V load(const float* from) {
  return hn::LoadU(D(), from);
}

HWY_INLINE VU32 load_u16(const uint16_t* from) {
  return hn::PromoteTo(U32(), hn::LoadU(U16(), from));
}

HWY_INLINE V load(const Bf16* from) {
  return hn::BitCast(D(), hn::ShiftLeft<16>(load_u16(&from->bits)));
}

// Bit by bit, for targets without the conversion: exponent and mantissa move up, subnormals are renormalised
// by an exact subtraction.
HWY_INLINE V widen_half_bits(VU32 half) {
  const U32 du;
  const VU32 sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(du, 0x8000u)));
  const VU32 shifted = hn::ShiftLeft<13>(hn::And(half, hn::Set(du, 0x7fffu)));
  const VU32 exponent = hn::And(shifted, hn::Set(du, 0x1fu << 23));
  const VU32 normal = hn::Add(shifted, hn::Set(du, 112u << 23));
  const VU32 special = hn::Add(normal, hn::Set(du, 112u << 23));
  const V tiny = hn::Sub(hn::BitCast(D(), hn::Add(normal, hn::Set(du, 1u << 23))), hn::Set(D(), 0x1p-14f));
  VU32 wide = hn::IfThenElse(hn::Eq(exponent, hn::Set(du, 0x1fu << 23)), special, normal);
  wide = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), hn::BitCast(du, tiny), wide);
  return hn::BitCast(D(), hn::Or(wide, sign));
}

HWY_INLINE V load(const Fp16* from) {
  if constexpr (kNativeHalf) {
    using F16 = hn::Rebind<hwy::float16_t, D>;
    return hn::PromoteTo(D(), hn::LoadU(F16(), reinterpret_cast<const hwy::float16_t*>(from)));
  } else {
    return widen_half_bits(load_u16(&from->bits));
  }
}

HWY_INLINE void store(V value, float* to) {
  hn::StoreU(value, D(), to);
}

HWY_INLINE void store_u16(VU32 value, uint16_t* to) {
  hn::StoreU(hn::TruncateTo(U16(), value), U16(), to);
}

HWY_INLINE void store(V value, Bf16* to) {
  const U32 du;
  const VU32 bits = hn::BitCast(du, value);
  const VU32 odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  VU32 rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
  if (mutant(Mutant::kTruncatingStore)) rounded = bits;
  const VU32 quiet = hn::Or(bits, hn::Set(du, 0x400000u));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
  store_u16(hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded)), &to->bits);
}

// The inverse of widen_half_bits; a subnormal result is rounded by the addition of 0.5, whose last place is
// the smallest half.
HWY_INLINE VU32 narrow_half_bits(V value) {
  const U32 du;
  const VU32 bits = hn::BitCast(du, value);
  const VU32 sign = hn::ShiftRight<16>(hn::And(bits, hn::Set(du, 0x80000000u)));
  const VU32 magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
  const VU32 odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const VU32 rebased = hn::Sub(magnitude, hn::Set(du, 112u << 23));
  VU32 half = hn::ShiftRight<13>(hn::Add(rebased, hn::Add(odd, hn::Set(du, 0xfffu))));
  const V shifted = hn::Add(hn::BitCast(D(), magnitude), hn::Set(D(), 0.5f));
  const VU32 tiny = hn::Sub(hn::BitCast(du, shifted), hn::BitCast(du, hn::Set(D(), 0.5f)));
  half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 113u << 23)), tiny, half);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x477fefffu)), hn::Set(du, 0x7c00u), half);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7f800000u)), hn::Set(du, 0x7e00u), half);
  return hn::Or(half, sign);
}

HWY_INLINE void store(V value, Fp16* to) {
  if constexpr (kNativeHalf) {
    using F16 = hn::Rebind<hwy::float16_t, D>;
    hn::StoreU(hn::DemoteTo(F16(), value), F16(), reinterpret_cast<hwy::float16_t*>(to));
  } else {
    store_u16(narrow_half_bits(value), &to->bits);
  }
}

// The first `count` < kLanes elements, zero in the other lanes.
template <typename S>
HWY_INLINE V load_first(const S* from, int64_t count) {
  S lanes[kLanes] = {};
  std::memcpy(lanes, from, static_cast<size_t>(count) * sizeof(S));
  return load(lanes);
}

template <typename S>
HWY_INLINE void store_first(V value, S* to, int64_t count) {
  S lanes[kLanes];
  store(value, lanes);
  std::memcpy(to, lanes, static_cast<size_t>(count) * sizeof(S));
}

// Only seeded faults round what stays fp32.
HWY_INLINE V through_bf16(V value) {
  Bf16 lanes[kLanes];
  store(value, lanes);
  return load(lanes);
}

// `count` is read for a tail alone.
template <bool kTail, typename S>
HWY_INLINE V load_columns(const S* from, int64_t count) {
  if constexpr (kTail) return load_first(from, count);
  return load(from);
}

template <bool kTail, typename S>
HWY_INLINE void store_columns(V value, S* to, int64_t count) {
  if constexpr (kTail) {
    store_first(value, to, count);
  } else {
    store(value, to);
  }
}

// a * b + c with one rounding. Without the instruction it is made in double, where the product is exact;
// 16-bit storage hides the two roundings of the plain form and does not pay for that.
template <typename S>
HWY_INLINE V fused(V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  if constexpr (sizeof(S) < sizeof(float)) {
    return hn::MulAdd(a, b, c);
  } else {
    const hn::Half<D> half;
    const hn::Rebind<double, hn::Half<D> > wide;
    const auto low = [&](V v) HWY_ATTR { return hn::PromoteTo(wide, hn::LowerHalf(half, v)); };
    const auto high = [&](V v) HWY_ATTR { return hn::PromoteTo(wide, hn::UpperHalf(half, v)); };
    return hn::Combine(D(), hn::DemoteTo(half, hn::MulAdd(high(a), high(b), high(c))),
                       hn::DemoteTo(half, hn::MulAdd(low(a), low(b), low(c))));
  }
#endif
}

// e^x within 1 ulp; 0 and infinity at the ends, NaN stays NaN. x = q ln 2 + r with |r| <= ln(2) / 2;
// the polynomial is the minimax fit of (e^r - 1 - r) / r^2 in relative error of e^r; 2^q in two factors
// reaches the subnormals.
HWY_INLINE V exp(V x) {
  const D d;
  const hn::RebindToSigned<D> di;
  const V clamped = hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 89.0f));
  const V q = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504f)));
  V r = hn::NegMulAdd(q, hn::Set(d, 0x1.62e4p-1f), clamped);  // 15 bits: the product is exact
  r = hn::NegMulAdd(q, hn::Set(d, 1.42860682e-6f), r);
  V p = hn::MulAdd(hn::Set(d, 0x1.9f0896p-13f), r, hn::Set(d, 0x1.6d8d08p-10f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.111270p-7f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.55548ep-5f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.555554p-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
  const auto exponent = hn::ConvertTo(di, q);
  const auto half = hn::ShiftRight<1>(exponent);
  const auto bias = hn::Set(di, 127);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(exponent, half), bias)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(hn::Mul(p, first), second));
}

HWY_INLINE V sigmoid(V x) {
  const V one = hn::Set(D(), 1.0f);
  return hn::Div(one, hn::Add(one, exp(hn::Neg(x))));
}

}  // namespace fmhc::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FMHC_CPU_VECTOR_INL_H
