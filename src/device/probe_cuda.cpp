// Asks the CUDA runtime what device this is. An absent or too old driver and a missing device are answers
// with a reason, not failures: the backend is then off.
#include <cuda_runtime_api.h>

#include "device/target.h"

namespace fmhc {
namespace {

constexpr int kRuntime = CUDART_VERSION;  // 1000 * major + 10 * minor

int32_t check_driver(fmhc_diag* diag) {
  int driver = 0;
  const cudaError_t error = cudaDriverGetVersion(&driver);
  cudaGetLastError();
  if (error != cudaSuccess || driver == 0) {
    return fail(diag, FMHC_UNSUPPORTED,
                "no NVIDIA driver is loaded; this build needs one for CUDA %d.%d (series 580 or later)",
                kRuntime / 1000, kRuntime % 1000 / 10);
  }
  // Within a major version an older driver serves; across majors it does not.
  if (driver / 1000 < kRuntime / 1000) {
    return fail(
        diag, FMHC_UNSUPPORTED,
        "the NVIDIA driver is for CUDA %d.%d; this build needs CUDA %d.0 or later (driver series 580)",
        driver / 1000, driver % 1000 / 10, kRuntime / 1000);
  }
  return FMHC_OK;
}

struct Query {
  cudaDeviceAttr attribute;
  int value;
};

}  // namespace

int32_t query_cuda(int32_t index, fmhc_target* out, fmhc_diag* diag) {
  FMHC_TRY(check_driver(diag));
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0) {
    cudaGetLastError();
    return fail(diag, FMHC_UNSUPPORTED, "no CUDA device: %s",
                error == cudaSuccess ? "the driver lists none" : cudaGetErrorString(error));
  }
  if (index < 0 || index >= devices) {
    return fail(diag, FMHC_INVALID, "device_index is %d; accepted: 0..%d", index, devices - 1);
  }
  enum { kMajor, kMinor, kUnits, kShared, kCache };
  Query queries[] = {{cudaDevAttrComputeCapabilityMajor, 0},
                     {cudaDevAttrComputeCapabilityMinor, 0},
                     {cudaDevAttrMultiProcessorCount, 0},
                     {cudaDevAttrMaxSharedMemoryPerBlockOptin, 0},
                     {cudaDevAttrL2CacheSize, 0}};
  for (Query& query : queries) {
    if (const cudaError_t error = cudaDeviceGetAttribute(&query.value, query.attribute, index);
        error != cudaSuccess) {
      cudaGetLastError();
      return fail(diag, FMHC_UNSUPPORTED, "device %d does not answer: %s", index, cudaGetErrorString(error));
    }
  }
  *out = {sizeof *out,
          FMHC_CUDA,
          index,
          10 * queries[kMajor].value + queries[kMinor].value,
          queries[kUnits].value,
          0,
          queries[kShared].value,
          queries[kCache].value};
  return FMHC_OK;
}

}  // namespace fmhc
