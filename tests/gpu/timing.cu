#include <algorithm>
#include <vector>

#include "parallel.cuh"
#include "timing.h"

namespace fmhc_gpu {
namespace {

constexpr int kWarmUps = 3;
constexpr int kForeignSteps = 400;
constexpr size_t kCopyBytes = size_t{4} << 30;
constexpr int kCopyThreads = 512;
constexpr int kCopyInFlight = 4;  // 16-byte words a thread
constexpr int kCopyWords = kCopyThreads * kCopyInFlight;

__global__ void empty_kernel() {}

__global__ void foreign_kernel(float* sink, float seed) {
  float a = seed + static_cast<float>(threadIdx.x);
  float b = seed * 2, c = seed * 3, d = seed * 4;
#pragma unroll
  for (int step = 0; step < kForeignSteps; ++step) {
    a = fmaf(a, 1.0001f + static_cast<float>(step) * 1e-6f, b);
    b = fmaf(b, 0.9999f - static_cast<float>(step) * 1e-6f, c);
    c = fmaf(c, 1.0002f + static_cast<float>(step) * 1e-7f, d);
    d = fmaf(d, 0.9998f - static_cast<float>(step) * 1e-7f, a);
  }
  if (a + b + c + d == 12345.678f) *sink = a;
}

__global__ void __launch_bounds__(kCopyThreads) copy_kernel(const int4* from, int4* to) {
  const int64_t begin = blockIdx.x * int64_t{kCopyWords} + threadIdx.x;
  int4 held[kCopyInFlight];
#pragma unroll
  for (int k = 0; k < kCopyInFlight; ++k) held[k] = __ldcs(from + begin + k * kCopyThreads);
#pragma unroll
  for (int k = 0; k < kCopyInFlight; ++k) __stcs(to + begin + k * kCopyThreads, held[k]);
}

struct RandomWords {
  uint64_t* words;
  FMHC_HD void operator()(int64_t i) const { words[i] = mix64(static_cast<uint64_t>(i)); }
};

__global__ void clock_kernel(unsigned long long* out, unsigned long long nanoseconds) {
  unsigned long long begin_ns, now_ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin_ns));
  const long long begin = clock64();
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now_ns));
  } while (now_ns - begin_ns < nanoseconds);
  out[0] = static_cast<unsigned long long>(clock64() - begin);
  out[1] = now_ns - begin_ns;
}

// Weighs every word by its place, so that moved bytes show as well.
struct SumChunk {
  const uint64_t* words;
  unsigned long long* sum;
  int64_t count, strands;
  FMHC_HD void operator()(int64_t strand) const {
    unsigned long long mine = 0;
    for (int64_t i = strand; i < count; i += strands) {
      mine += mix64(words[i] ^ mix64(static_cast<uint64_t>(i)));
    }
#if defined(__CUDA_ARCH__)
    atomicAdd(sum, mine);
#else
    *sum += mine;
#endif
  }
};

Timing summary(std::vector<double> samples, int calls) {
  std::sort(samples.begin(), samples.end());
  const double scale = 1.0 / calls;
  return {samples[samples.size() / 2] * scale, samples.front() * scale, samples.back() * scale, true};
}

// The fastest of a few, by events and without a graph: a bandwidth is what the memory can do.
template <class F>
double time_eagerly(Device& device, F work) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  FMHC_CUDA(cudaEventCreate(&begin));
  FMHC_CUDA(cudaEventCreate(&end));
  float least = 1e30f;
  for (int i = 0; i < 8; ++i) {
    float ms = 0;
    FMHC_CUDA(cudaEventRecord(begin, device.stream()));
    work();
    FMHC_CUDA(cudaEventRecord(end, device.stream()));
    FMHC_CUDA(cudaEventSynchronize(end));
    FMHC_CUDA(cudaEventElapsedTime(&ms, begin, end));
    least = std::min(least, ms);
  }
  FMHC_CUDA(cudaEventDestroy(begin));
  FMHC_CUDA(cudaEventDestroy(end));
  return static_cast<double>(least) * 1e3;
}

Timing time_on_host(int replays, int calls, const std::function<bool()>& enqueue) {
  std::vector<double> samples;
  for (int i = 0; i < replays; ++i) {
    timespec begin{}, end{};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (!enqueue()) return {};
    clock_gettime(CLOCK_MONOTONIC, &end);
    samples.push_back(static_cast<double>(end.tv_sec - begin.tv_sec) * 1e6 +
                      static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-3);
  }
  return summary(samples, calls);
}

}  // namespace

Timing time_calls(Device& device, int replays, int calls, const std::function<bool()>& enqueue,
                  const std::function<void()>& before) {
  if (!device.is_cuda()) return time_on_host(replays, calls, enqueue);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  FMHC_CUDA(cudaStreamBeginCapture(device.stream(), cudaStreamCaptureModeThreadLocal));
  const bool good = enqueue();
  const cudaError_t ended = cudaStreamEndCapture(device.stream(), &graph);
  if (!good) {
    (void)cudaGetLastError();
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    return {};
  }
  cuda_check(ended, "cudaStreamEndCapture");
  FMHC_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  FMHC_CUDA(cudaEventCreate(&begin));
  FMHC_CUDA(cudaEventCreate(&end));
  std::vector<double> samples;
  for (int i = 0; i < kWarmUps; ++i) FMHC_CUDA(cudaGraphLaunch(exec, device.stream()));
  for (int i = 0; i < replays; ++i) {
    float ms = 0;
    if (before) before();
    FMHC_CUDA(cudaEventRecord(begin, device.stream()));
    FMHC_CUDA(cudaGraphLaunch(exec, device.stream()));
    FMHC_CUDA(cudaEventRecord(end, device.stream()));
    FMHC_CUDA(cudaEventSynchronize(end));
    FMHC_CUDA(cudaEventElapsedTime(&ms, begin, end));
    samples.push_back(static_cast<double>(ms) * 1e3);
  }
  FMHC_CUDA(cudaEventDestroy(begin));
  FMHC_CUDA(cudaEventDestroy(end));
  FMHC_CUDA(cudaGraphExecDestroy(exec));
  FMHC_CUDA(cudaGraphDestroy(graph));
  return summary(samples, calls);
}

// Large device-to-device copies, by the driver and by a kernel of 16-byte accesses: the faster of the two.
double measure_copy_tbps(Device& device) {
  if (!device.is_cuda()) return 0;
  void* from = device.allocate(kCopyBytes);
  void* to = device.allocate(kCopyBytes);
  for_each(device, static_cast<int64_t>(kCopyBytes / sizeof(uint64_t)),
           RandomWords{static_cast<uint64_t*>(from)});
  const auto words = static_cast<int64_t>(kCopyBytes / sizeof(int4));
  const auto by_kernel = [&] {
    copy_kernel<<<static_cast<unsigned>(words / kCopyWords), kCopyThreads, 0, device.stream()>>>(
        static_cast<const int4*>(from), static_cast<int4*>(to));
    FMHC_CUDA(cudaGetLastError());
  };
  const auto by_driver = [&] { device.copy_within(to, from, kCopyBytes); };
  const double us = std::min(time_eagerly(device, by_kernel), time_eagerly(device, by_driver));
  device.release(from);
  device.release(to);
  return 2 * static_cast<double>(kCopyBytes) / us * 1e-6;
}

double measure_clock_mhz(Device& device) {
  if (!device.is_cuda()) return 0;
  unsigned long long reading[2] = {};
  void* place = device.allocate(sizeof reading);
  for (int i = 0; i < 2; ++i) {
    clock_kernel<<<1, 1, 0, device.stream()>>>(static_cast<unsigned long long*>(place), 2000000);
    FMHC_CUDA(cudaGetLastError());
  }
  device.copy_out(reading, place, sizeof reading);
  device.release(place);
  return 1e3 * static_cast<double>(reading[0]) / static_cast<double>(reading[1]);
}

void launch_nothing(Device& device) {
  if (!device.is_cuda()) return;
  empty_kernel<<<1, 32, 0, device.stream()>>>();
  FMHC_CUDA(cudaGetLastError());
}

void launch_foreign(Device& device, float* sink) {
  if (!device.is_cuda()) return;
  foreign_kernel<<<132, 128, 0, device.stream()>>>(sink, 0.5f);
  FMHC_CUDA(cudaGetLastError());
}

uint64_t checksum_of(Device& device, const void* data, size_t bytes, uint64_t* sum) {
  constexpr int64_t kStrands = 1 << 16;
  device.fill_bytes(sum, 0, sizeof *sum);
  const auto words = static_cast<int64_t>(bytes / sizeof(uint64_t));
  const int64_t strands = device.is_cuda() ? std::min(kStrands, words) : 1;
  for_each(device, strands,
           SumChunk{static_cast<const uint64_t*>(data), reinterpret_cast<unsigned long long*>(sum), words,
                    strands});
  uint64_t result = 0;
  device.copy_out(&result, sum, sizeof result);
  return result;
}

}  // namespace fmhc_gpu
