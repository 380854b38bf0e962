// Family `generic`: project, then finish; seam is post before them. Scratch holds the partial sums between
// the two.
#include "backends/cuda/entries.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/params_of.h"
#include "backends/cuda/runtime.h"
#include "core/dtype.h"

namespace fmhc::cuda {
namespace {

constexpr unsigned kThreads = 256;  // of every generic kernel
constexpr int64_t kTokensOfProject = 4;

GenericKernels kernels_of(const Problem& problem) {
  switch (problem.residual_dtype) {
    case FMHC_BF16:
      return generic_kernels_bf16();
    case FMHC_FP16:
      return generic_kernels_fp16();
    default:
      return generic_kernels_fp32();
  }
}

unsigned blocks(int64_t work) {
  return static_cast<unsigned>(min64(work, kMostBlocks));
}

int32_t run_post(Session& session, const Launch& launch) {
  const PostParams params = post_params(launch);
  const int64_t tiles = ceil_div(params.hidden, kThreads);
  return session.launch(kernels_of(launch.problem).post, {blocks(params.tokens * tiles), 1, kThreads, 0},
                        params);
}

int32_t run_project(Session& session, const Launch& launch, const WideIn& residual, const Partials& out) {
  const ProjectParams params = project_params(launch, residual, out);
  const unsigned groups = blocks(ceil_div(params.tokens, kTokensOfProject));
  return session.launch(kernels_of(launch.problem).project,
                        {groups, static_cast<unsigned>(params.splits), kThreads, 0}, params);
}

int32_t run_finish(Session& session, const Launch& launch, const WideIn& residual, const Partials& in,
                   FinishMode mode) {
  const FinishParams params = finish_params(launch, residual, in, mode);
  return session.launch(kernels_of(launch.problem).finish, {blocks(params.tokens), 1, kThreads, 0}, params);
}

int32_t run_site(Session& session, const Launch& launch, const WideIn& residual, FinishMode mode) {
  const Partials partials = partials_in(launch.args.scratch, logit_count(launch.problem), launch.tokens);
  FMHC_TRY(run_project(session, launch, residual, partials));
  return run_finish(session, launch, residual, partials, mode);
}

// 16 bytes at a time where every row allows it, else one element.
int64_t unit_bytes(const Problem& problem) {
  return is_vector(problem) ? kVectorBytes : dtype_bytes(problem.residual_dtype);
}

const void* expand_kernel_of(int64_t bytes) {
  const ExpandKernels kernels = expand_kernels();
  return bytes == kVectorBytes ? kernels.bytes16 : bytes == 4 ? kernels.bytes4 : kernels.bytes2;
}

}  // namespace

int32_t launch_expand(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  const fmhc_args& args = launch.args;
  const int64_t bytes = unit_bytes(launch.problem);
  const int64_t elements = bytes / dtype_bytes(launch.problem.residual_dtype);
  const ExpandParams params{args.residual.data,
                            args.residual_out.data,
                            args.residual.stride[0] / elements,
                            args.residual_out.stride[0] / elements,
                            args.residual_out.stride[1] / elements,
                            launch.tokens,
                            launch.problem.hidden / elements,
                            launch.problem.streams};
  const int64_t tiles = ceil_div(params.width, kThreads);
  return session.launch(expand_kernel_of(bytes), {blocks(params.tokens * tiles), 1, kThreads, 0}, params);
}

int32_t launch_post_generic(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  return run_post(session, launch);
}

int32_t launch_project_generic(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  return run_project(session, launch, wide(launch.args.residual), partials_out(launch.args));
}

int32_t launch_finish_generic(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  return run_finish(session, launch, wide(launch.args.residual), partials_given(launch.args), kFinishSite);
}

int32_t launch_contract_generic(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  const FinishMode mode = launch.problem.carried_pre != 0 ? kFinishCarried : kFinishMean;
  return run_finish(session, launch, wide(launch.args.residual), {}, mode);
}

int32_t launch_pre_generic(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  return run_site(session, launch, wide(launch.args.residual), kFinishSite);
}

int32_t launch_head_generic(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  return run_site(session, launch, wide(launch.args.residual), kFinishHead);
}

int32_t launch_seam_generic(const Launch& launch, fmhc_diag* diag) {
  Session session;
  FMHC_TRY(session.enter(launch, diag));
  FMHC_TRY(run_post(session, launch));
  return run_site(session, launch, as_input(wide(launch.args.residual_out)), kFinishSite);
}

int32_t prepare_generic(const Problem& problem, const Target& target, fmhc_diag* diag) {
  DeviceGuard guard;
  FMHC_TRY(enter_target(guard, target, diag));
  const GenericKernels kernels = kernels_of(problem);
  const bool copies = problem.op == FMHC_EXPAND;
  const void* const wanted[] = {copies ? expand_kernel_of(unit_bytes(problem)) : kernels.post,
                                kernels.project, kernels.finish};
  for (const void* kernel : wanted) FMHC_TRY(load_kernel(kernel, 0, diag));
  return FMHC_OK;
}

}  // namespace fmhc::cuda
