// Family `portable`: post, finish, contract in 16-byte accesses; project, pre, head and seam on tensor cores
// with packed fn. pre and head are project and finish, seam is post with the projection and finish, chained
// by programmatic launch.
#include "backends/cuda/entries.h"
#include "backends/cuda/geometry.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/params_of.h"
#include "backends/cuda/runtime.h"
#include "core/dtype.h"

namespace fmhc::cuda {
namespace {

VectorKernels kernels_of(const Problem& problem) {
  switch (problem.residual_dtype) {
    case FMHC_BF16:
      return vector_kernels_bf16();
    case FMHC_FP16:
      return vector_kernels_fp16();
    default:
      return vector_kernels_fp32();
  }
}

int64_t vectors_of(const Problem& problem) {
  return problem.hidden * dtype_bytes(problem.residual_dtype) / kVectorBytes;
}

TensorCoreKernels projecting_kernels(const Problem& problem) {
  const int pieces = pieces_of(problem.projection);
  switch (problem.residual_dtype) {
    case FMHC_BF16:
      return tensor_core_kernels_bf16(pieces);
    case FMHC_FP16:
      return tensor_core_kernels_fp16(pieces);
    default:
      return tensor_core_kernels_fp32(pieces);
  }
}

const void* projecting_kernel(const Problem& problem, ProjectKind kind, bool staged) {
  const TensorCoreKernels kernels = projecting_kernels(problem);
  switch (kind) {
    case ProjectKind::kHead:
      return staged ? kernels.head : kernels.head_direct;
    case ProjectKind::kSeam:
      return staged ? kernels.seam : kernels.seam_direct;
    default:
      return staged ? kernels.project : kernels.project_direct;
  }
}

// Of the projection as a launch of its own.
ProjectKind kind_of(const Problem& problem) {
  return problem.op == FMHC_HEAD ? ProjectKind::kHead : ProjectKind::kProject;
}

ProjectShape shape_of(const Launch& launch, ProjectKind kind) {
  const Problem& problem = launch.problem;
  return project_shape(kind, problem.residual_dtype, problem.hidden, launch.tokens, launch.split_k,
                       pieces_of(problem.projection), launch.target.num_units, launch.target.smem_bytes);
}

int32_t check_packed(const void* packed, fmhc_diag* diag) {
  if (reinterpret_cast<uintptr_t>(packed) % kVectorBytes == 0) return FMHC_OK;
  return fail(diag, FMHC_INVALID, "fn_packed.data is %p; expected a multiple of %d bytes", packed,
              static_cast<int>(kVectorBytes));
}

Grid grid_of(const ProjectShape& shape, int32_t splits) {
  return {static_cast<unsigned>(splits), static_cast<unsigned>(shape.groups),
          static_cast<unsigned>(shape.warp_rows * 128), shape.shared_bytes};
}

int32_t run_post(Session& session, const Launch& launch) {
  PostParams params = post_params(launch);
  const PostShape shape = post_shape(launch.tokens, vectors_of(launch.problem), launch.target.num_units);
  params.tiles = shape.tiles;
  const auto blocks = static_cast<unsigned>(min64(launch.tokens * shape.tiles, kMostBlocks));
  return session.launch(kernels_of(launch.problem).post, {blocks, 1, static_cast<unsigned>(shape.threads), 0},
                        params);
}

int32_t run_project(Session& session, const Launch& launch, const WideIn& residual, const Partials& out,
                    const ProjectShape& shape, bool trigger_late) {
  ProjectParams params = project_params(launch, residual, out);
  params.group_tokens = shape.group_tokens;
  params.trigger_late = trigger_late ? 1 : 0;
  return session.launch(projecting_kernel(launch.problem, kind_of(launch.problem), shape.staged),
                        grid_of(shape, launch.split_k), params);
}

// `before`: how the launch before this one walked the tokens, or null.
int32_t run_finish(Session& session, const Launch& launch, FinishParams params, const ProjectShape* before) {
  int64_t blocks = launch.tokens;
  if (before != nullptr && launch.tokens > launch.target.num_units) {
    params.group_tokens = before->group_tokens;
    params.token_groups = static_cast<int32_t>(before->groups);
    blocks = before->groups * before->group_tokens;
  }
  const FinishShape shape = finish_shape(launch.tokens, vectors_of(launch.problem), launch.target.num_units,
                                         launch.problem.batch_invariant != 0);
  const bool from_logits = params.mode == kFinishSite || params.mode == kFinishHead;
  const int32_t warps = shape.warps + (from_logits ? 1 : 0);
  return session.launch(kernels_of(launch.problem).finish[shape.index],
                        {static_cast<unsigned>(blocks), 1, static_cast<unsigned>(warps * 32), 0}, params);
}

// project's dependents start only when its own wait is over, so the streams are complete before finish
// begins.
int32_t run_site(Session& session, const Launch& launch, const WideIn& residual, FinishMode mode) {
  const Partials partials = partials_in(launch.args.scratch, logit_count(launch.problem), launch.tokens);
  const ProjectShape shape = shape_of(launch, kind_of(launch.problem));
  FMHC_TRY(run_project(session, launch, residual, partials, shape, true));
  FinishParams params = finish_params(launch, residual, partials, mode);
  params.residual_ready = 1;
  return run_finish(session, launch, params, &shape);
}

int32_t enter_packed(Session& session, const Launch& launch, fmhc_diag* diag) {
  FMHC_TRY(check_packed(launch.args.fn_packed.data, diag));
  return session.enter(launch, diag);
}

}  // namespace

int32_t launch_post(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  return run_post(session, launch);
}

int32_t launch_finish(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  return run_finish(
      session, launch,
      finish_params(launch, wide(launch.args.residual), partials_given(launch.args), kFinishSite), nullptr);
}

int32_t launch_contract(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  const FinishMode mode = launch.problem.carried_pre != 0 ? kFinishCarried : kFinishMean;
  return run_finish(session, launch, finish_params(launch, wide(launch.args.residual), {}, mode), nullptr);
}

int32_t launch_project(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(enter_packed(session, launch, diag));
  return run_project(session, launch, wide(launch.args.residual), partials_out(launch.args),
                     shape_of(launch, kind_of(launch.problem)), false);
}

int32_t launch_pre(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(enter_packed(session, launch, diag));
  return run_site(session, launch, wide(launch.args.residual), kFinishSite);
}

int32_t launch_head(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(enter_packed(session, launch, diag));
  return run_site(session, launch, wide(launch.args.residual), kFinishHead);
}

int32_t launch_seam(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(enter_packed(session, launch, diag));
  const Partials partials = partials_in(launch.args.scratch, logit_count(launch.problem), launch.tokens);
  const ProjectShape shape = shape_of(launch, ProjectKind::kSeam);
  SeamParams params{post_params(launch), project_params(launch, {}, partials)};
  params.project.group_tokens = shape.group_tokens;
  FMHC_TRY(session.launch(projecting_kernel(launch.problem, ProjectKind::kSeam, shape.staged),
                          grid_of(shape, launch.split_k), params));
  return run_finish(session, launch,
                    finish_params(launch, as_input(wide(launch.args.residual_out)), partials, kFinishSite),
                    &shape);
}

int32_t launch_seam_split(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(enter_packed(session, launch, diag));
  FMHC_TRY(run_post(session, launch));
  return run_site(session, launch, as_input(wide(launch.args.residual_out)), kFinishSite);
}

int32_t launch_head_cluster(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  const fmhc_args& args = launch.args;
  const Problem& problem = launch.problem;
  HeadParams params{};
  params.residual = wide(args.residual);
  params.fn = static_cast<const float*>(args.fn.data);
  params.fn_row = args.fn.stride[0];
  params.scale = small(args.scale);
  params.base = small(args.base);
  params.layer_input = wide(args.layer_input);
  params.pre_mix = small(args.pre_mix);
  params.tokens = launch.tokens;
  params.hidden = problem.hidden;
  params.inverse_flat = 1.0f / static_cast<float>(flat_width(problem));
  params.fn_pairs = reinterpret_cast<uintptr_t>(args.fn.data) % 8 == 0 && params.fn_row % 2 == 0 ? 1 : 0;
  params.rms_eps = problem.consts.rms_eps;
  params.pre_eps = problem.consts.pre_eps;
  const HeadShape shape = head_shape(problem.hidden, launch.tokens, launch.target.num_units);
  return session.launch(
      head_cluster_kernel_of(shape.cluster),
      {static_cast<unsigned>(shape.clusters * shape.cluster), 1, static_cast<unsigned>(shape.threads), 0},
      params);
}

int32_t prepare_head_cluster(const Problem& problem, const Target& target, fmhc_diag* diag) {
  DeviceGuard guard;
  FMHC_TRY(enter_target(guard, target, diag));
  return load_kernel(head_cluster_kernel_of(head_shape(problem.hidden, 1, target.num_units).cluster), 0,
                     diag);
}

int32_t prepare_vector(const Problem& problem, const Target& target, fmhc_diag* diag) {
  DeviceGuard guard;
  FMHC_TRY(enter_target(guard, target, diag));
  const VectorKernels kernels = kernels_of(problem);
  const void* const wanted[] = {kernels.post, kernels.finish[0], kernels.finish[1], kernels.finish[2]};
  for (const void* kernel : wanted) FMHC_TRY(load_kernel(kernel, 0, diag));
  return FMHC_OK;
}

int32_t prepare_tensor_core(const Problem& problem, const Target& target, fmhc_diag* diag) {
  FMHC_TRY(prepare_vector(problem, target, diag));
  DeviceGuard guard;
  FMHC_TRY(guard.enter(target.device_index, diag));
  const auto shared = static_cast<size_t>(target.smem_bytes);
  for (const bool staged : {true, false}) {
    FMHC_TRY(load_kernel(projecting_kernel(problem, kind_of(problem), staged), shared, diag));
    const void* seam = projecting_kernel(problem, ProjectKind::kSeam, staged);
    if (problem.op == FMHC_SEAM && seam != nullptr) FMHC_TRY(load_kernel(seam, shared, diag));
  }
  FMHC_TRY(load_kernel(pack_kernels().pack, 0, diag));
  return load_kernel(pack_kernels().fence, 0, diag);
}

int32_t pack(const Problem& problem, const Target& target, const fmhc_in& fn, void* packed, void* stream,
             fmhc_diag* diag) {
  FMHC_TRY(check_packed(packed, diag));
  PackParams params{};
  params.fn = static_cast<const float*>(fn.data);
  params.fn_row = fn.stride[0];
  params.packed = packed;
  params.flat = flat_width(problem);
  params.logits = static_cast<int32_t>(logit_count(problem));
  params.pieces = pieces_of(problem.projection);
  params.tiles = tiles_of(kind_of(problem));
  Session session;
  FMHC_TRY(session.enter(problem, target, stream, false, diag));
  const int64_t blocks = ceil_div(params.flat * params.tiles, 256);
  FMHC_TRY(session.launch(pack_kernels().pack, {static_cast<unsigned>(min64(blocks, kMostBlocks)), 1, 256, 0},
                          params));
  return session.launch(pack_kernels().fence, {1, 1, 32, 0});
}

}  // namespace fmhc::cuda
