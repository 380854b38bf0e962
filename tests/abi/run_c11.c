/* The interface from C11, linked and run: a post of one token with a mix that is not symmetric. */
#include <flashmhc/flashmhc.h>
#include <stdio.h>
#include <string.h>

enum { kStreams = 2, kHidden = 3 };

static int fail(const char* what, const fmhc_diag* diag) {
  fprintf(stderr, "%s: %s: %s\n", what, fmhc_code_name(diag->code), diag->text);
  return 1;
}

int main(void) {
  static const float residual[kStreams][kHidden] = {{1, 1, 1}, {2, 2, 2}};
  static const float sublayer_output[kHidden] = {10, 20, 30};
  static const float post[kStreams] = {0, 1};
  static const float comb[kStreams][kStreams] = {{0, 1}, {0, 0}}; /* old stream 0 goes to new stream 1 */
  static const float wanted[kStreams][kHidden] = {{0, 0, 0}, {11, 21, 31}};
  float out[kStreams][kHidden];
  fmhc_target target;
  fmhc_diag diag = {0};
  fmhc_plan plan;
  fmhc_problem problem = {0};
  fmhc_args args = {0};

  problem.struct_size = sizeof problem;
  problem.op = FMHC_POST;
  problem.streams = kStreams;
  problem.residual_dtype = FMHC_FP32;
  problem.projection = FMHC_CLASS_F;
  problem.hidden = kHidden;
  problem.max_tokens = 1;
  if (fmhc_preset("deepseek_v4", &problem, &diag)) return fail("preset", &diag);
  if (fmhc_target_query(FMHC_CPU, 0, &target, &diag)) return fail("target", &diag);
  if (fmhc_plan_make(&problem, &target, NULL, &plan, &diag)) return fail("plan", &diag);
  if (fmhc_plan_scratch(&plan) != 0 || fmhc_plan_state(&plan) != 0) return 2;

  args.struct_size = sizeof args;
  args.residual = (fmhc_in){residual, {1, kStreams, kHidden}, {kStreams * kHidden, kHidden, 1}, 3, FMHC_FP32};
  args.sublayer_output = (fmhc_in){sublayer_output, {1, kHidden}, {kHidden, 1}, 2, FMHC_FP32};
  args.post_in = (fmhc_in){post, {1, kStreams}, {kStreams, 1}, 2, FMHC_FP32};
  args.comb_in = (fmhc_in){comb, {1, kStreams, kStreams}, {kStreams * kStreams, kStreams, 1}, 3, FMHC_FP32};
  args.residual_out = (fmhc_out){out, {1, kStreams, kHidden}, {kStreams * kHidden, kHidden, 1}, 3, FMHC_FP32};
  if (fmhc_run(&plan, &args, &diag)) return fail("run", &diag);
  if (memcmp(out, wanted, sizeof out) != 0) {
    fprintf(stderr, "post moved stream 0 to the wrong place: %g\n", (double)out[1][0]);
    return 1;
  }
  return 0;
}
