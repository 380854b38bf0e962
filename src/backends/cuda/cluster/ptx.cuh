// Hopper instructions of the cluster kernels.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "backends/cuda/common/ptx.cuh"
#include "backends/cuda/sm90/cluster.cuh"

namespace fmhc::cuda::cluster {

__device__ __forceinline__ bool barrier_done(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{.reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
      "p;}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}
// CTA scope also where the data come from other CTAs of the cluster: st.async completes on this CTA's
// barrier, and a cluster-scope acquire would flush L1 at every wait.
__device__ __forceinline__ void wait_for(uint32_t barrier, uint32_t parity) {
  while (!barrier_done(barrier, parity)) {
  }
}
__device__ __forceinline__ void arrive_at(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrives no earlier than `witness` is computed: a sum of squares of what was read under the barrier. Reads
// of shared memory are not ordered before an arrival that does not depend on them. Its sign bit is never set,
// NaN included.
__device__ __forceinline__ void arrive_after(uint32_t barrier, float witness) {
  arrive_at(barrier + (__float_as_uint(witness) >> 31));
}
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void send4(uint32_t address, float a, float b, float c, float d,
                                      uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
          address),
      "f"(a), "f"(b), "f"(c), "f"(d), "r"(barrier)
      : "memory");
}

__device__ __forceinline__ void load_box3(uint32_t target, const CUtensorMap* map, int x, int y,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4}], [%5];" ::"r"(target),
      "l"(map), "r"(x), "r"(y), "r"(0), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void load_box2(uint32_t target, const CUtensorMap* map, int x, int y,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(target),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void store_box3(const CUtensorMap* map, int x, int y, uint32_t source) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];\n"
      "cp.async.bulk.commit_group;" ::"l"(map),
      "r"(x), "r"(y), "r"(0), "r"(source)
      : "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_for_store_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
__device__ __forceinline__ void load_bytes(uint32_t target, const void* source, uint32_t bytes,
                                           uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
      "l"(source), "r"(bytes), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// Shared memory written by ordinary stores, before the copy engine reads it.
__device__ __forceinline__ void fence_for_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void load_matrices(uint32_t (&a)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ uint4 read_shared4(uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
__device__ __forceinline__ float4 read_shared4f(uint32_t address) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
__device__ __forceinline__ float read_shared(uint32_t address) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(address) : "memory");
  return v;
}
__device__ __forceinline__ void write_shared4(uint32_t address, const uint4& v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}
__device__ __forceinline__ void write_shared2(uint32_t address, float a, float b) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(a), "f"(b) : "memory");
}
__device__ __forceinline__ void write_shared(uint32_t address, float a) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(a) : "memory");
}
__device__ __forceinline__ uint4 load_constant4(const uint4* address) {
  uint4 v;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address));
  return v;
}

template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kBarrier, int kThreads>
__device__ __forceinline__ void sync_named() {
  asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}
template <int kBarrier, int kThreads>
__device__ __forceinline__ void arrive_named() {
  asm volatile("bar.arrive %0, %1;" ::"n"(kBarrier), "n"(kThreads) : "memory");
}

}  // namespace fmhc::cuda::cluster
