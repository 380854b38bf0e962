// post: one mix for each token.
#include "backends/cpu/post.h"

#include "backends/cpu/entries.h"
#include "backends/cpu/rows.h"

namespace fmhc::cpu {

void mix_token(const Stages& stages, const Launch& launch, int64_t token) {
  const Problem& problem = launch.problem;
  const fmhc_args& args = launch.args;
  const Rows residual(args.residual);
  const OutRows out(args.residual_out);
  float comb[kMaxStreams * kMaxStreams];
  float post[kMaxStreams];
  gather_small(args.comb_in, token, problem.streams, comb);
  gather_small(args.post_in, token, problem.streams, post);
  stages.mix({problem.residual_dtype, problem.streams, problem.hidden, residual.at(token),
              residual.stream_stride, Rows(args.sublayer_output).at(token), comb, post, out.at(token),
              out.stream_stride});
}

int32_t launch_post(const Stages& stages, const Launch& launch, fmhc_diag* diag) {
  FMHC_TRY(check_executor(launch.args.executor, diag));
  return for_tokens(launch, [&](int64_t token) { mix_token(stages, launch, token); });
}

}  // namespace fmhc::cpu
