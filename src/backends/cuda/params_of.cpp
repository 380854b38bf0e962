#include "backends/cuda/params_of.h"

#include "backends/cuda/one_launch.h"

namespace fmhc::cuda {
namespace {

template <typename Small, typename Tensor>
Small small_of(const Tensor& tensor) {
  using Pointer = decltype(Small::data);
  return {static_cast<Pointer>(tensor.data), {tensor.stride[0], tensor.stride[1], tensor.stride[2]}};
}

// [T, n, H] has a stream stride, [T, H] none.
template <typename Wide, typename Tensor>
Wide wide_of(const Tensor& tensor) {
  return {tensor.data, tensor.stride[0], tensor.rank == 3 ? tensor.stride[1] : 0};
}

bool is_aligned(const void* data, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

// post [T, n] and comb [T, n, n] in rows that 16-byte loads can walk.
bool has_packed_mix(const fmhc_args& args, int64_t n) {
  const fmhc_in& post = args.post_in;
  const fmhc_in& comb = args.comb_in;
  return post.stride[1] == 1 && post.stride[0] % 4 == 0 && is_aligned(post.data, kVectorBytes) &&
         comb.stride[2] == 1 && comb.stride[1] == n && comb.stride[0] % 4 == 0 &&
         is_aligned(comb.data, kVectorBytes);
}

Partials partials_of(void* dot, const int64_t* dot_stride, void* square, const int64_t* square_stride) {
  return {
      static_cast<float*>(dot), static_cast<float*>(square), dot_stride[0], dot_stride[1], square_stride[0],
      square_stride[1]};
}

}  // namespace

WideIn wide(const fmhc_in& tensor) {
  return wide_of<WideIn>(tensor);
}
WideOut wide(const fmhc_out& tensor) {
  return wide_of<WideOut>(tensor);
}
SmallIn small(const fmhc_in& tensor) {
  return small_of<SmallIn>(tensor);
}
SmallOut small(const fmhc_out& tensor) {
  return small_of<SmallOut>(tensor);
}

WideIn as_input(const WideOut& tensor) {
  return {tensor.data, tensor.token, tensor.stream};
}

Partials partials_out(const fmhc_args& args) {
  return partials_of(args.dot_mix.data, args.dot_mix.stride, args.sqrsum.data, args.sqrsum.stride);
}

Partials partials_given(const fmhc_args& args) {
  return partials_of(const_cast<void*>(args.dot_mix_in.data), args.dot_mix_in.stride,
                     const_cast<void*>(args.sqrsum_in.data), args.sqrsum_in.stride);
}

PostParams post_params(const Launch& launch) {
  const fmhc_args& args = launch.args;
  PostParams params{};
  params.residual = wide(args.residual);
  params.sublayer_output = wide(args.sublayer_output);
  params.residual_out = wide(args.residual_out);
  params.post = small(args.post_in);
  params.comb = small(args.comb_in);
  params.tokens = launch.tokens;
  params.hidden = launch.problem.hidden;
  params.streams = launch.problem.streams;
  params.packed_mix = has_packed_mix(args, launch.problem.streams) ? 1 : 0;
  return params;
}

ProjectParams project_params(const Launch& launch, const WideIn& residual, const Partials& out) {
  ProjectParams params{};
  params.residual = residual;
  params.fn = static_cast<const float*>(launch.args.fn.data);
  params.fn_row = launch.args.fn.stride[0];
  params.packed = launch.args.fn_packed.data;
  params.out = out;
  params.tokens = launch.tokens;
  params.hidden = launch.problem.hidden;
  params.streams = launch.problem.streams;
  params.logits = static_cast<int32_t>(logit_count(launch.problem));
  params.splits = launch.split_k;
  return params;
}

FinishParams finish_params(const Launch& launch, const WideIn& residual, const Partials& in,
                           FinishMode mode) {
  const fmhc_args& args = launch.args;
  const Problem& problem = launch.problem;
  FinishParams params{};
  params.in = in;
  params.residual = residual;
  params.scale = small(args.scale);
  params.base = small(args.base);
  params.pre_in = small(args.pre_in);
  params.layer_input = wide(args.layer_input);
  params.post_mix = small(args.post_mix);
  params.comb_mix = small(args.comb_mix);
  params.pre_mix = small(args.pre_mix);
  params.norm_weight = args.norm_weight.data;
  params.norm_stride = args.norm_weight.stride[0];
  params.tokens = launch.tokens;
  params.hidden = problem.hidden;
  params.streams = problem.streams;
  params.logits = static_cast<int32_t>(logit_count(problem));
  params.splits = launch.split_k;
  params.mode = mode;
  params.norm = problem.norm;
  params.norm_weight_bf16 = problem.norm_weight_dtype == FMHC_BF16 ? 1 : 0;
  params.norm_weight_vector = params.norm_stride == 1 && is_aligned(params.norm_weight, kVectorBytes) ? 1 : 0;
  params.iterations = problem.consts.sinkhorn_iters;
  // Eight slices fill a warp's loads; more where there would be too many groups.
  params.group_slices = static_cast<int32_t>(max64(8, ceil_div(launch.split_k, kMostGroups)));
  params.groups = static_cast<int32_t>(ceil_div(launch.split_k, params.group_slices));
  params.inverse_flat = 1.0f / static_cast<float>(flat_width(problem));
  params.inverse_hidden = 1.0f / static_cast<float>(problem.hidden);
  params.rms_eps = problem.consts.rms_eps;
  params.pre_eps = problem.consts.pre_eps;
  params.sinkhorn_eps = problem.consts.sinkhorn_eps;
  params.post_mult = problem.consts.post_mult;
  params.norm_eps = problem.consts.norm_eps;
  return params;
}

OneLaunchParams one_launch_params(const Launch& launch) {
  const fmhc_args& args = launch.args;
  const fmhc_consts& consts = launch.problem.consts;
  OneLaunchParams params{};
  params.post_in = static_cast<const float*>(args.post_in.data);
  params.comb_in = static_cast<const float*>(args.comb_in.data);
  params.scale = static_cast<const float*>(args.scale.data);
  params.base = static_cast<const float*>(args.base.data);
  params.norm_weight = args.norm_weight.data;
  params.layer_input = args.layer_input.data;
  params.post_mix = static_cast<float*>(args.post_mix.data);
  params.comb_mix = static_cast<float*>(args.comb_mix.data);
  params.pre_mix = static_cast<float*>(args.pre_mix.data);
  params.tokens = static_cast<int32_t>(launch.tokens);
  params.rounded_norm = launch.problem.norm == FMHC_NORM_UNFUSED ? 1 : 0;
  params.iterations = consts.sinkhorn_iters;
  params.rms_eps = consts.rms_eps;
  params.pre_eps = consts.pre_eps;
  params.sinkhorn_eps = consts.sinkhorn_eps;
  params.post_mult = consts.post_mult;
  params.norm_eps = consts.norm_eps;
  return params;
}

}  // namespace fmhc::cuda
