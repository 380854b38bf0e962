// Family `cluster`: one launch for many tokens, a cluster of 16 CTAs a tile of 16 tokens.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>

#include "backends/cuda/cluster/kernels.h"
#include "backends/cuda/cluster/params.h"
#include "backends/cuda/entries.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/runtime.h"
#include "core/math.h"

namespace fmhc::cuda {
namespace {

using EncodeTiled = CUresult(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                             const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                             CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// The driver's function, looked up by prepare; the same for every device.
std::atomic<EncodeTiled*> encode_tiled{nullptr};

int32_t find_encoder(fmhc_diag* diag) {
  if (encode_tiled.load(std::memory_order_acquire) != nullptr) return FMHC_OK;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  if (error != cudaSuccess) return fail_cuda(diag, error, "looking up cuTensorMapEncodeTiled");
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    return fail(diag, FMHC_UNSUPPORTED, "the driver has no cuTensorMapEncodeTiled");
  }
  encode_tiled.store(reinterpret_cast<EncodeTiled*>(function), std::memory_order_release);
  return FMHC_OK;
}

// Boxes of 64 columns x 16 tokens (x 4 streams), 128-byte swizzle; rows past the last token read as zero.
int32_t encode(const void* data, int64_t hidden, int64_t tokens, bool streams, CUtensorMap* map,
               fmhc_diag* diag) {
  const auto row = static_cast<cuuint64_t>(hidden) * 2;
  const cuuint64_t extent[3] = {static_cast<cuuint64_t>(hidden), static_cast<cuuint64_t>(tokens), 4};
  const cuuint64_t pitch[2] = {streams ? row * 4 : row, row};
  const cuuint32_t box[3] = {64, cluster::kTokens, 4};
  const cuuint32_t step[3] = {1, 1, 1};
  const CUresult result = encode_tiled.load(std::memory_order_acquire)(
      map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, streams ? 3 : 2, const_cast<void*>(data), extent, pitch, box,
      step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return FMHC_OK;
  return fail(diag, FMHC_INTERNAL, "cuTensorMapEncodeTiled: error %d", static_cast<int>(result));
}

cluster::Form form_of(int32_t op) {
  switch (op) {
    case FMHC_SEAM:
      return cluster::Form::kSeam;
    case FMHC_HEAD:
      return cluster::Form::kHead;
    case FMHC_PROJECT:
      return cluster::Form::kProject;
    default:
      return cluster::Form::kPre;
  }
}

cluster::Kernel kernel_of(const Problem& problem) {
  const cluster::Form form = form_of(problem.op);
  const auto norm = static_cast<cluster::Norm>(problem.norm);
  switch (problem.hidden) {
    case 4096:
      return cluster::kernel_4096(form, norm);
    case 5120:
      return cluster::kernel_5120(form, norm);
    default:
      return cluster::kernel_7168(form, norm);
  }
}

cluster::Params params_of(const Launch& launch, int64_t clusters) {
  const int64_t tiles = ceil_div(launch.tokens, cluster::kTokens);
  cluster::Params params{};
  static_cast<OneLaunchParams&>(params) = one_launch_params(launch);
  params.packed = launch.args.fn_packed.data;
  params.dot_mix = static_cast<float*>(launch.args.dot_mix.data);
  params.sqrsum = static_cast<float*>(launch.args.sqrsum.data);
  params.tiles_each = static_cast<int32_t>(tiles / clusters);
  params.tiles_more = static_cast<int32_t>(tiles % clusters);
  return params;
}

// Clusters that can be resident at once: seven of sixteen CTAs with this much shared memory on 132
// multiprocessors.
int64_t resident_clusters(const Target& target) {
  return max64(1, (target.num_units - 20) / cluster::kCtas);
}

}  // namespace

int32_t launch_cluster(const Launch& launch, fmhc_diag* diag) {
  const fmhc_args& args = launch.args;
  const int64_t hidden = launch.problem.hidden;
  const bool seam = launch.problem.op == FMHC_SEAM;
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  CUtensorMap residual, sublayer_output, residual_out;
  FMHC_TRY(encode(args.residual.data, hidden, launch.tokens, true, &residual, diag));
  sublayer_output = residual_out = residual;
  if (seam) {
    FMHC_TRY(encode(args.sublayer_output.data, hidden, launch.tokens, false, &sublayer_output, diag));
    FMHC_TRY(encode(args.residual_out.data, hidden, launch.tokens, true, &residual_out, diag));
  }
  const int64_t clusters = min64(resident_clusters(launch.target), ceil_div(launch.tokens, cluster::kTokens));
  const cluster::Params params = params_of(launch, clusters);
  const cluster::Kernel kernel = kernel_of(launch.problem);
  Grid grid{static_cast<unsigned>(clusters * cluster::kCtas), 1, static_cast<unsigned>(kernel.threads),
            static_cast<size_t>(kernel.shared_bytes)};
  grid.cluster = cluster::kCtas;
  return session.launch(kernel.function, grid, residual, sublayer_output, residual_out, params);
}

int32_t prepare_cluster(const Problem& problem, const Target& target, fmhc_diag* diag) {
  DeviceGuard guard;
  FMHC_TRY(enter_target(guard, target, diag));
  FMHC_TRY(find_encoder(diag));
  const cluster::Kernel kernel = kernel_of(problem);
  FMHC_TRY(load_kernel(kernel.function, static_cast<size_t>(kernel.shared_bytes), diag));
  FMHC_TRY(load_kernel(cluster::pack_kernel(), 0, diag));
  FMHC_TRY(load_kernel(pack_kernels().fence, 0, diag));
  const cudaError_t error =
      cudaFuncSetAttribute(kernel.function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  return error == cudaSuccess ? static_cast<int32_t>(FMHC_OK)
                              : fail_cuda(diag, error, "allowing clusters of 16");
}

int32_t pack_cluster(const Problem& problem, const Target& target, const fmhc_in& fn, void* packed,
                     void* stream, fmhc_diag* diag) {
  const cluster::PackParams params{static_cast<const float*>(fn.data), fn.stride[0], packed,
                                   static_cast<int32_t>(problem.hidden),
                                   static_cast<int32_t>(logit_count(problem))};
  Session session;
  FMHC_TRY(session.enter(problem, target, stream, false, diag));
  const auto blocks = static_cast<unsigned>(problem.hidden / 512 * cluster::kCtas);
  FMHC_TRY(session.launch(cluster::pack_kernel(), {blocks, 1, 256, 0}, params));
  return session.launch(pack_kernels().fence, {1, 1, 32, 0});
}

}  // namespace fmhc::cuda
