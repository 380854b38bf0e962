// Storage types on the device: 16-byte accesses and the way to fp32 and back. Rounding is to nearest, ties to
// even.
#pragma once

#include <cstdint>

namespace fmhc::cuda {

struct DeviceBf16 {
  uint16_t bits;
};
struct DeviceFp16 {
  uint16_t bits;
};

// Two elements in a word.
__device__ __forceinline__ float2 unpack_pair(uint32_t word, DeviceBf16) {
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}
__device__ __forceinline__ float2 unpack_pair(uint32_t word, DeviceFp16) {
  float2 pair;
  asm("{.reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
      : "=f"(pair.x), "=f"(pair.y)
      : "r"(word));
  return pair;
}
__device__ __forceinline__ uint32_t pack_pair(float low, float high, DeviceBf16) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ __forceinline__ uint32_t pack_pair(float low, float high, DeviceFp16) {
  uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// Memory that another kernel wrote shortly before: past L1, which would only be a copy nobody reads again.
__device__ __forceinline__ uint4 load_stream(const void* address) {
  uint4 value;
  asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address)
               : "memory");
  return value;
}

__device__ __forceinline__ uint32_t word_of(const uint4& value, int index) {
  return index == 0 ? value.x : index == 1 ? value.y : index == 2 ? value.z : value.w;
}

// 16 bytes of a storage type as fp32.
template <typename T>
struct Vec;

template <typename Half>
struct VecOfHalves {
  static constexpr int kWidth = 8;
  __device__ static __forceinline__ void unpack(const uint4& raw, float (&out)[8]) {
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const float2 both = unpack_pair(word_of(raw, pair), Half{});
      out[2 * pair] = both.x;
      out[2 * pair + 1] = both.y;
    }
  }
  __device__ static __forceinline__ uint4 pack(const float (&in)[8]) {
    return {pack_pair(in[0], in[1], Half{}), pack_pair(in[2], in[3], Half{}), pack_pair(in[4], in[5], Half{}),
            pack_pair(in[6], in[7], Half{})};
  }
};
template <>
struct Vec<DeviceBf16> : VecOfHalves<DeviceBf16> {};
template <>
struct Vec<DeviceFp16> : VecOfHalves<DeviceFp16> {};
template <>
struct Vec<float> {
  static constexpr int kWidth = 4;
  __device__ static __forceinline__ void unpack(const uint4& raw, float (&out)[4]) {
#pragma unroll
    for (int index = 0; index < 4; ++index) out[index] = __uint_as_float(word_of(raw, index));
  }
  __device__ static __forceinline__ uint4 pack(const float (&in)[4]) {
    return {__float_as_uint(in[0]), __float_as_uint(in[1]), __float_as_uint(in[2]), __float_as_uint(in[3])};
  }
};

// One element.
__device__ __forceinline__ float widen(DeviceBf16 value) {
  return __uint_as_float(static_cast<uint32_t>(value.bits) << 16);
}
__device__ __forceinline__ float widen(DeviceFp16 value) {
  return unpack_pair(value.bits, DeviceFp16{}).x;
}
__device__ __forceinline__ float widen(float value) {
  return value;
}

template <typename T>
__device__ __forceinline__ T round_to(float value) {
  return {static_cast<uint16_t>(pack_pair(value, 0.0f, T{}) & 0xffffu)};
}
template <>
__device__ __forceinline__ float round_to<float>(float value) {
  return value;
}

}  // namespace fmhc::cuda
