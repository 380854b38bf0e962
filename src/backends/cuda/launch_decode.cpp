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
  const fmhc_consts& consts = launch.problem.consts;
  decode::Params params{};
  params.residual = args.residual.data;
  params.sublayer_output = args.sublayer_output.data;
  params.post_in = static_cast<const float*>(args.post_in.data);
  params.comb_in = static_cast<const float*>(args.comb_in.data);
  params.fn = static_cast<const float*>(args.fn.data);
  params.scale = static_cast<const float*>(args.scale.data);
  params.base = static_cast<const float*>(args.base.data);
  params.norm_weight = args.norm_weight.data;
  params.residual_out = args.residual_out.data;
  params.layer_input = args.layer_input.data;
  params.post_mix = static_cast<float*>(args.post_mix.data);
  params.comb_mix = static_cast<float*>(args.comb_mix.data);
  params.pre_mix = static_cast<float*>(args.pre_mix.data);
  params.state = args.state;
  params.tokens = static_cast<int32_t>(launch.tokens);
  params.group_tokens = static_cast<int32_t>(ceil_div(launch.tokens, config.groups));
  params.weights_first = launch.problem.pdl;
  params.norm_weight_bf16 = args.norm_weight.dtype == FMHC_BF16 ? 1 : 0;
  params.rounded_norm = launch.problem.norm == FMHC_NORM_UNFUSED ? 1 : 0;
  params.iterations = consts.sinkhorn_iters;
  params.rms_eps = consts.rms_eps;
  params.pre_eps = consts.pre_eps;
  params.sinkhorn_eps = consts.sinkhorn_eps;
  params.post_mult = consts.post_mult;
  params.norm_eps = consts.norm_eps;
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
