#include "backends/cuda/runtime.h"

#include "core/counters.h"
#include "device/target.h"

namespace fmhc::cuda {
namespace {

struct ErrorClass {
  cudaError_t error;
  int32_t code;
};

// Errors not listed are bugs of ours. Those of FMHC_DEVICE_STICKY end the context: every later call repeats
// them.
constexpr ErrorClass kErrors[] = {
    {cudaErrorMemoryAllocation, FMHC_RESOURCE},
    {cudaErrorLaunchOutOfResources, FMHC_RESOURCE},
    {cudaErrorInvalidResourceHandle, FMHC_INVALID},
    {cudaErrorInvalidDevice, FMHC_INVALID},
    {cudaErrorContextIsDestroyed, FMHC_DEVICE_STICKY},
    {cudaErrorStreamCaptureUnsupported, FMHC_INVALID},
    {cudaErrorStreamCaptureInvalidated, FMHC_INVALID},
    {cudaErrorStreamCaptureWrongThread, FMHC_INVALID},
    {cudaErrorNoDevice, FMHC_UNSUPPORTED},
    {cudaErrorInsufficientDriver, FMHC_UNSUPPORTED},
    {cudaErrorNoKernelImageForDevice, FMHC_UNSUPPORTED},
    {cudaErrorInvalidDeviceFunction, FMHC_UNSUPPORTED},
    {cudaErrorUnsupportedPtxVersion, FMHC_UNSUPPORTED},
    {cudaErrorJitCompilerNotFound, FMHC_UNSUPPORTED},
    {cudaErrorDevicesUnavailable, FMHC_UNSUPPORTED},
    {cudaErrorIllegalAddress, FMHC_DEVICE_STICKY},
    {cudaErrorMisalignedAddress, FMHC_DEVICE_STICKY},
    {cudaErrorInvalidAddressSpace, FMHC_DEVICE_STICKY},
    {cudaErrorInvalidPc, FMHC_DEVICE_STICKY},
    {cudaErrorIllegalInstruction, FMHC_DEVICE_STICKY},
    {cudaErrorHardwareStackError, FMHC_DEVICE_STICKY},
    {cudaErrorLaunchFailure, FMHC_DEVICE_STICKY},
    {cudaErrorLaunchTimeout, FMHC_DEVICE_STICKY},
    {cudaErrorAssert, FMHC_DEVICE_STICKY},
    {cudaErrorECCUncorrectable, FMHC_DEVICE_STICKY},
    {cudaErrorNvlinkUncorrectable, FMHC_DEVICE_STICKY},
    {cudaErrorContained, FMHC_DEVICE_STICKY},
    {cudaErrorTensorMemoryLeak, FMHC_DEVICE_STICKY},
    {cudaErrorMpsClientTerminated, FMHC_DEVICE_STICKY},
};

int32_t check_stream(cudaStream_t stream, int device, fmhc_diag* diag) {
  // The default streams belong to whatever device is current.
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return FMHC_OK;
  // A capturing stream may not be asked, and was checked by whoever began the capture on it.
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (const cudaError_t error = cudaStreamIsCapturing(stream, &capture); error != cudaSuccess) {
    return fail_cuda(diag, error, "reading the state of args.stream");
  }
  if (capture != cudaStreamCaptureStatusNone) return FMHC_OK;
  int owner = -1;
  if (const cudaError_t error = cudaStreamGetDevice(stream, &owner); error != cudaSuccess) {
    return fail_cuda(diag, error, "reading the device of args.stream");
  }
  if (owner == device) return FMHC_OK;
  return fail(diag, FMHC_INVALID, "args.stream belongs to device %d; the plan is for device %d", owner,
              device);
}

}  // namespace

int32_t code_of(cudaError_t error) {
  for (const ErrorClass& row : kErrors) {
    if (row.error == error) return row.code;
  }
  return FMHC_INTERNAL;
}

int32_t fail_cuda(fmhc_diag* diag, cudaError_t error, const char* what) {
  const int32_t code = code_of(error);
  if (code != FMHC_DEVICE_STICKY) cudaGetLastError();
  return fail(diag, code, "%s: %s (%s)%s", what, cudaGetErrorString(error), cudaGetErrorName(error),
              code == FMHC_DEVICE_STICKY ? "; raised by earlier work, the device context is lost" : "");
}

DeviceGuard::~DeviceGuard() {
  if (previous_ >= 0) cudaSetDevice(previous_);
}

int32_t DeviceGuard::enter(int device, fmhc_diag* diag) {
  int current = -1;
  if (const cudaError_t error = cudaGetDevice(&current); error != cudaSuccess) {
    return fail_cuda(diag, error, "reading the current device");
  }
  if (current == device) return FMHC_OK;
  if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) {
    return fail_cuda(diag, error, "making target.device_index the current device");
  }
  previous_ = current;
  return FMHC_OK;
}

int32_t enter_target(DeviceGuard& guard, const Target& target, fmhc_diag* diag) {
  fmhc_target found{};
  FMHC_TRY(query_cuda(target.device_index, &found, diag));
  if (found.arch != target.arch) {
    return fail(diag, FMHC_INVALID, "target.arch is %d; device %d is %d", target.arch, target.device_index,
                found.arch);
  }
  return guard.enter(target.device_index, diag);
}

int32_t Session::enter(const Problem& problem, const Target& target, void* stream, bool overlap,
                       fmhc_diag* diag) {
  diag_ = diag;
  operation_ = find_op(problem.op)->name;
  stream_ = static_cast<cudaStream_t>(stream);
  overlap_ = overlap && target.arch >= 90;
  FMHC_TRY(guard_.enter(target.device_index, diag));
  if (const cudaError_t pending = cudaPeekAtLastError(); pending != cudaSuccess) {
    const int32_t code = code_of(pending) == FMHC_DEVICE_STICKY ? FMHC_DEVICE_STICKY : FMHC_DEVICE_BEFORE;
    return fail(diag, code, "pending before %s, nothing launched: %s (%s)", operation_,
                cudaGetErrorString(pending), cudaGetErrorName(pending));
  }
  return check_stream(stream_, target.device_index, diag);
}

int32_t Session::launch_raw(const void* kernel, const Grid& grid, void** arguments) {
  cudaLaunchAttribute attributes[3] = {};
  unsigned count = 0;
  if (overlap_) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (grid.cooperative) {
    attributes[count].id = cudaLaunchAttributeCooperative;
    attributes[count++].val.cooperative = 1;
  }
  if (grid.cluster > 0) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = grid.cluster;
    attributes[count].val.clusterDim.y = attributes[count].val.clusterDim.z = 1;
    ++count;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.blocks_x, grid.blocks_y, 1);
  config.blockDim = dim3(grid.threads, 1, 1);
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream_;
  config.attrs = attributes;
  config.numAttrs = count;
  const cudaError_t error = cudaLaunchKernelExC(&config, kernel, arguments);
  return error == cudaSuccess ? static_cast<int32_t>(FMHC_OK) : fail_cuda(diag_, error, operation_);
}

int32_t load_kernel(const void* kernel, size_t shared_bytes, fmhc_diag* diag) {
  cudaFuncAttributes attributes{};
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel); error != cudaSuccess) {
    return fail_cuda(diag, error, "loading a kernel");
  }
  count(Counter::kModuleLoads);
  const size_t dynamic =
      shared_bytes > attributes.sharedSizeBytes ? shared_bytes - attributes.sharedSizeBytes : 0;
  if (dynamic == 0) return FMHC_OK;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(dynamic));
  return error == cudaSuccess ? static_cast<int32_t>(FMHC_OK)
                              : fail_cuda(diag, error, "granting shared memory");
}

}  // namespace fmhc::cuda
