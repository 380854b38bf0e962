// Family `decode`: one cooperative launch for up to 64 tokens, which meet through records in the plan's
// state.
#include <cuda_runtime_api.h>

#include "backends/cuda/decode/kernels.h"
#include "backends/cuda/decode/params.h"
#include "backends/cuda/decode/shape.h"
#include "backends/cuda/entries.h"
#include "backends/cuda/runtime.h"
#include "core/math.h"

namespace fmhc::cuda {
namespace {

decode::Kernel kernel_of(const Problem& problem, int config) {
  const bool seam = problem.op == FMHC_SEAM;
  const bool norm = problem.norm != FMHC_NORM_NONE;
  switch (problem.hidden) {
    case 4096:
      return decode::kernel_4096(config, seam, norm);
    case 5120:
      return decode::kernel_5120(config, seam, norm);
    default:
      return decode::kernel_7168(config, seam, norm);
  }
}

decode::Params params_of(const Launch& launch, const decode::Config& config) {
  const fmhc_args& args = launch.args;
  decode::Params params{};
  static_cast<OneLaunchParams&>(params) = one_launch_params(launch);
  params.residual = args.residual.data;
  params.sublayer_output = args.sublayer_output.data;
  params.fn = static_cast<const float*>(args.fn.data);
  params.residual_out = args.residual_out.data;
  params.state = args.state;
  params.group_tokens = static_cast<int32_t>(ceil_div(launch.tokens, config.groups));
  params.weights_first = launch.problem.pdl;
  params.norm_weight_bf16 = args.norm_weight.dtype == FMHC_BF16 ? 1 : 0;
  return params;
}

}  // namespace

int32_t launch_decode(const Launch& launch, fmhc_diag* diag) {
  const int config = static_cast<int>(launch.variant);
  const decode::Kernel kernel = kernel_of(launch.problem, config);
  const decode::Params params = params_of(launch, decode::kConfigs[config]);
  // Fewer groups than the configuration allows where the tokens do not fill them.
  const auto groups = static_cast<unsigned>(ceil_div(launch.tokens, params.group_tokens));
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  Grid grid{static_cast<unsigned>(kernel.slices), groups, static_cast<unsigned>(kernel.threads),
            static_cast<size_t>(kernel.shared_bytes)};
  grid.cooperative = true;
  return session.launch(kernel.function, grid, params);
}

int32_t prepare_decode(const Problem& problem, const Target& target, fmhc_diag* diag) {
  DeviceGuard guard;
  FMHC_TRY(enter_target(guard, target, diag));
  for (int config = 0; config < decode::kConfigCount; ++config) {
    const decode::Kernel kernel = kernel_of(problem, config);
    if (kernel.function == nullptr) continue;
    FMHC_TRY(load_kernel(kernel.function, static_cast<size_t>(kernel.shared_bytes), diag));
  }
  return FMHC_OK;
}

int32_t init_decode_state(const Problem&, const Target& target, void* state, void* stream, fmhc_diag* diag) {
  DeviceGuard guard;
  FMHC_TRY(guard.enter(target.device_index, diag));
  const cudaError_t error = cudaMemsetAsync(state, 0, decode::kStateBytes, static_cast<cudaStream_t>(stream));
  return error == cudaSuccess ? static_cast<int32_t>(FMHC_OK) : fail_cuda(diag, error, "clearing args.state");
}

}  // namespace fmhc::cuda
