// How the CTAs of a decode launch meet: 16-byte records {three floats, generation} in the plan's state, each
// written by one 128-bit store and polled until its generation is the launch's. No fence, no atomic, no
// memset.
//
// No stale record is ever fresh. Every CTA keeps its own generation word and those of CTAs that this grid
// does not have, so that all words advance by one a launch whatever the grid. A record lives in a slot that
// (token, slice, kind) names in every geometry; a launch writes every slot it may read and retags one chunk
// of the others, so that no tag is older than kChunks launches and the 32-bit word may wrap. Launches of one
// state are ordered by their stream; with programmatic launch the successor touches the state only after its
// dependency wait.
#pragma once

#include <cstdint>

#include "backends/cuda/decode/geometry.cuh"

namespace fmhc::cuda::decode {

struct Record {
  float value[3];
  uint32_t generation;
};

__device__ __forceinline__ void store_record(uint4* slot, float a, float b, float c, uint32_t generation) {
  asm volatile(
      "{.reg .b128 q; .reg .b64 l, h; mov.b64 l, {%1, %2}; mov.b64 h, {%3, %4}; mov.b128 q, {l, h};"
      " st.relaxed.gpu.global.b128 [%0], q;}" ::"l"(slot),
      "r"(__float_as_uint(a)), "r"(__float_as_uint(b)), "r"(__float_as_uint(c)), "r"(generation)
      : "memory");
}

__device__ __forceinline__ Record load_record(const uint4* slot) {
  uint32_t a, b, c, generation;
  asm volatile(
      "{.reg .b128 q; .reg .b64 l, h; ld.relaxed.gpu.global.b128 q, [%4]; mov.b128 {l, h}, q;"
      " mov.b64 {%0, %1}, l; mov.b64 {%2, %3}, h;}"
      : "=r"(a), "=r"(b), "=r"(c), "=r"(generation)
      : "l"(slot)
      : "memory");
  return {{__uint_as_float(a), __uint_as_float(b), __uint_as_float(c)}, generation};
}

// The launch is cooperative, so whoever is waited for runs and a wait ends. A debug build still bounds it.
struct Spin {
#if defined(FMHC_BOUNDED_SPINS)
  int rounds = 0;
  __device__ __forceinline__ void step() {
    if (++rounds > (1 << 22)) __trap();
  }
#else
  __device__ __forceinline__ void step() {}
#endif
};

__device__ __forceinline__ Record wait_record(const uint4* slot, uint32_t generation) {
  Record record;
  Spin spin;
  do {
    record = load_record(slot);
    spin.step();
  } while (record.generation != generation);
  return record;
}

// Places in the state. All pointers are 16-byte aligned.
struct State {
  uint32_t* generations;  // [kMaxCtas]
  uint4* records;         // [kMaxTokens][kMaxSlices][kKinds]
  uint4* broadcast;       // [kReplicas][kMaxTokens][kBroadcastKinds]

  __device__ __forceinline__ explicit State(void* base)
      : generations(static_cast<uint32_t*>(base)),
        records(reinterpret_cast<uint4*>(static_cast<char*>(base) + kRecordsOffset)),
        broadcast(reinterpret_cast<uint4*>(static_cast<char*>(base) + kBroadcastOffset)) {}

  __device__ __forceinline__ uint4* record(int token, int slice, int kind) const {
    return records + (token * kMaxSlices + slice) * kKinds + kind;
  }
  __device__ __forceinline__ uint4* answer(int replica, int token, int kind) const {
    return broadcast + (replica * kMaxTokens + token) * kBroadcastKinds + kind;
  }
};

__device__ __forceinline__ uint32_t read_generation(const State& state, int cta) {
  uint32_t last;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(last) : "l"(state.generations + cta) : "memory");
  return last + 1;
}

// A tag that no launch will wait for before its slot is written again.
__device__ __forceinline__ uint32_t idle_tag(uint32_t generation) {
  return generation ^ 0x80000000u;
}

// One warp of every CTA, once a launch, after all of the CTA has read the generation: advances the words this
// CTA looks after and retags its share of the launch's chunk. G says which kinds the launch writes itself.
template <class G>
__device__ __forceinline__ void close_launch(const State& state, const Place& place, uint32_t generation,
                                             int tokens) {
  const int lane = static_cast<int>(threadIdx.x & 31);
  for (int other = place.cta + place.ctas * lane; other < kMaxCtas; other += place.ctas * 32) {
    state.generations[other] = generation;
  }
  const int chunk = static_cast<int>(generation % kChunks);
  for (int index = place.cta * 32 + lane; index < kChunkSlots; index += place.ctas * 32) {
    const int slot = chunk * kChunkSlots + index;
    if (slot >= kSlots) break;
    if (slot < kRecordSlots) {
      const bool live = slot / (kMaxSlices * kKinds) < tokens && slot / kKinds % kMaxSlices < G::kSlices;
      if (!(live && G::writes_kind(slot % kKinds)))
        store_record(state.records + slot, 0, 0, 0, idle_tag(generation));
    } else {
      const int answer = slot - kRecordSlots;
      const bool live = answer / kBroadcastKinds % kMaxTokens < tokens;
      if (!(live && answer % kBroadcastKinds < G::kAnswers)) {
        store_record(state.broadcast + answer, 0, 0, 0, idle_tag(generation));
      }
    }
  }
}

}  // namespace fmhc::cuda::decode
