#include "device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fmhc_gpu {
namespace {

const char* fatal_file = nullptr;

}  // namespace

void set_fatal_file(const char* path) {
  fatal_file = path;
}

void die(const char* what, const char* why) {
  std::printf("{\"fatal\": \"%s: %s\"}\n", what, why);
  std::fflush(stdout);
  if (std::FILE* file = fatal_file == nullptr ? nullptr : std::fopen(fatal_file, "a"); file != nullptr) {
    std::fprintf(file, "{\"fatal\": \"%s: %s\"}\n", what, why);
    std::fclose(file);
  }
  std::_Exit(3);
}

void cuda_check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) die(what, cudaGetErrorString(code));
}

namespace {

// The kernel module's own version, "580.159.04"; empty where the system does not say.
std::string module_version() {
  std::FILE* file = std::fopen("/proc/driver/nvidia/version", "r");
  if (file == nullptr) return "";
  char line[256] = "";
  (void)!std::fgets(line, sizeof line, file);
  std::fclose(file);
  for (const char* word = std::strtok(line, " \t\n"); word != nullptr; word = std::strtok(nullptr, " \t\n")) {
    if (std::strspn(word, "0123456789.") == std::strlen(word) && std::strchr(word, '.') != nullptr)
      return word;
  }
  return "";
}

}  // namespace

Device::Device(int32_t kind) : kind_(kind) {
  fmhc_diag diag{};
  if (is_cuda()) {
    FMHC_CUDA(cudaSetDevice(0));
    FMHC_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  if (fmhc_target_query(kind, 0, &target_, &diag) != FMHC_OK) die("fmhc_target_query", diag.text);
}

Device::~Device() {
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

void* Device::allocate(size_t bytes) {
  void* data = nullptr;
  bytes = (bytes + 255) / 256 * 256 + 256;
  if (is_cuda()) {
    FMHC_CUDA(cudaMalloc(&data, bytes));
  } else {
    data = std::aligned_alloc(256, bytes);
    if (data == nullptr) die("aligned_alloc", "out of memory");
  }
  return data;
}

void Device::release(void* data) {
  if (is_cuda()) {
    FMHC_CUDA(cudaFree(data));
  } else {
    std::free(data);
  }
}

void Device::copy_in(void* to, const void* from, size_t bytes) {
  if (!is_cuda()) {
    std::memcpy(to, from, bytes);
    return;
  }
  FMHC_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  wait();
}

void Device::copy_out(void* to, const void* from, size_t bytes) {
  if (!is_cuda()) {
    std::memcpy(to, from, bytes);
    return;
  }
  FMHC_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
  wait();
}

void Device::copy_within(void* to, const void* from, size_t bytes) {
  if (is_cuda()) {
    FMHC_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
  } else {
    std::memcpy(to, from, bytes);
  }
}

void Device::fill_bytes(void* data, int value, size_t bytes) {
  if (bytes == 0) return;
  if (is_cuda()) {
    FMHC_CUDA(cudaMemsetAsync(data, value, bytes, stream_));
  } else {
    std::memset(data, value, bytes);
  }
}

void Device::wait() {
  if (is_cuda()) FMHC_CUDA(cudaStreamSynchronize(stream_));
}

CardInfo Device::card() const {
  CardInfo info;
  if (!is_cuda()) {
    info.name = "cpu";
    info.units = target_.num_units;
    return info;
  }
  cudaDeviceProp properties{};
  int driver = 0;
  int runtime = 0;
  int sm_khz = 0;
  int memory_khz = 0;
  FMHC_CUDA(cudaGetDeviceProperties(&properties, 0));
  FMHC_CUDA(cudaDriverGetVersion(&driver));
  FMHC_CUDA(cudaRuntimeGetVersion(&runtime));
  FMHC_CUDA(cudaDeviceGetAttribute(&sm_khz, cudaDevAttrClockRate, 0));
  FMHC_CUDA(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, 0));
  info.name = properties.name;
  const std::string module = module_version();
  info.driver = (module.empty() ? "" : module + ", ") + "CUDA " + std::to_string(driver / 1000) + "." +
                std::to_string(driver % 1000 / 10);
  info.runtime = std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10);
  info.clocks = std::to_string(sm_khz / 1000) + "/" + std::to_string(memory_khz / 1000) + " MHz max";
  info.units = properties.multiProcessorCount;
  info.l2_bytes = static_cast<size_t>(properties.l2CacheSize);
  info.memory_bytes = properties.totalGlobalMem;
  return info;
}

}  // namespace fmhc_gpu
