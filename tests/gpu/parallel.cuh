// One loop, two machines: a functor over an index range runs as a CUDA kernel or as a host loop. A reduction
// gathers a Tally: how many checks, how many misses, the worst ratio to the bound.
#pragma once

#include "device.h"
#include "values.h"

namespace fmhc_gpu {

inline constexpr int64_t kNowhere = INT64_MAX;

// One compared element. `got` must lie in [low, high]; `want` is the exact value.
struct Detail {
  double got, want, low, high;
  double nearest;  // the correctly rounded value, where a rounding is judged; else got
  int64_t place[3];
  double slack = 0;  // by how much the unrounded value may be off, where a rounding is judged
};

struct Tally {
  unsigned long long checks = 0, misses = 0, above = 0, below = 0, misrounded = 0;
  double worst = 0;                     // error over the error allowed
  long long first_miss = kNowhere;      // index into the functor
  double error_sum = 0, value_sum = 0;  // of squares

  FMHC_HD void add(const Detail& d, long long index) {
    ++checks;
    const double error = d.got - d.want;
    const double room = fmax(d.high - d.want, d.want - d.low);
    const bool miss = !(d.low <= d.got && d.got <= d.high);
    if (miss) ++misses;
    if (miss && index < first_miss) first_miss = index;
    above += error > 0;
    below += error < 0;
    misrounded += d.got != d.nearest;
    // A result on the wrong side of a rounding boundary is off by twice its distance from the boundary.
    double ratio = error == 0    ? 0
                   : d.slack > 0 ? fmax(fabs(error) - fabs(d.nearest - d.want), 0.0) / (2 * d.slack)
                                 : fabs(error) / fmax(room, 1e-300);
    if (!(ratio <= 1e30)) ratio = error == error || d.want == d.want ? 1e30 : 0;
    worst = fmax(worst, ratio);
    if (error == error) {
      error_sum += error * error;
      value_sum += d.want * d.want;
    }
  }
  FMHC_HD void merge(const Tally& other) {
    checks += other.checks;
    misses += other.misses;
    above += other.above;
    below += other.below;
    misrounded += other.misrounded;
    worst = fmax(worst, other.worst);
    if (other.first_miss < first_miss) first_miss = other.first_miss;
    error_sum += other.error_sum;
    value_sum += other.value_sum;
  }
};

#if defined(__CUDACC__)

inline constexpr int kBlock = 256;
inline constexpr int64_t kMaxBlocks = 132 * 16;

inline unsigned blocks_for(int64_t count) {
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  return static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

template <class F>
__global__ void each_kernel(int64_t count, F body) {
  for (int64_t i = blockIdx.x * int64_t{kBlock} + threadIdx.x; i < count; i += int64_t{kBlock} * gridDim.x) {
    body(i);
  }
}

template <class F>
__global__ void tally_kernel(int64_t count, F check, Tally* total) {
  Tally mine;
  for (int64_t i = blockIdx.x * int64_t{kBlock} + threadIdx.x; i < count; i += int64_t{kBlock} * gridDim.x) {
    mine.add(check.detail(i), i);
  }
  __shared__ alignas(16) unsigned char raw[sizeof(Tally) * kBlock];
  auto* block = reinterpret_cast<Tally*>(raw);
  block[threadIdx.x] = mine;
  for (int half = kBlock / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) block[threadIdx.x].merge(block[threadIdx.x + half]);
  }
  if (threadIdx.x != 0) return;
  const Tally& sum = block[0];
  atomicAdd(&total->checks, sum.checks);
  atomicAdd(&total->misses, sum.misses);
  atomicAdd(&total->above, sum.above);
  atomicAdd(&total->below, sum.below);
  atomicAdd(&total->misrounded, sum.misrounded);
  atomicAdd(&total->error_sum, sum.error_sum);
  atomicAdd(&total->value_sum, sum.value_sum);
  atomicMin(&total->first_miss, sum.first_miss);
  // Non-negative doubles order like their bits.
  atomicMax(reinterpret_cast<unsigned long long*>(&total->worst),
            static_cast<unsigned long long>(__double_as_longlong(sum.worst)));
}

template <class F>
__global__ void detail_kernel(F check, int64_t index, Detail* out) {
  *out = check.detail(index);
}

template <class F>
void for_each(Device& device, int64_t count, F body) {
  if (count <= 0) return;
  if (device.is_cuda()) {
    each_kernel<<<blocks_for(count), kBlock, 0, device.stream()>>>(count, body);
    FMHC_CUDA(cudaGetLastError());
    return;
  }
  for (int64_t i = 0; i < count; ++i) body(i);
}

// Adds to *total, which lies in the device's memory. Asynchronous.
template <class F>
void tally(Device& device, int64_t count, F check, Tally* total) {
  if (count <= 0) return;
  if (device.is_cuda()) {
    tally_kernel<<<blocks_for(count), kBlock, 0, device.stream()>>>(count, check, total);
    FMHC_CUDA(cudaGetLastError());
    return;
  }
  for (int64_t i = 0; i < count; ++i) total->add(check.detail(i), i);
}

template <class F>
Detail detail_at(Device& device, F check, int64_t index) {
  if (!device.is_cuda()) return check.detail(index);
  Detail result{};
  void* place = device.allocate(sizeof(Detail));
  detail_kernel<<<1, 1, 0, device.stream()>>>(check, index, static_cast<Detail*>(place));
  FMHC_CUDA(cudaGetLastError());
  device.copy_out(&result, place, sizeof result);
  device.release(place);
  return result;
}

#endif
}  // namespace fmhc_gpu
