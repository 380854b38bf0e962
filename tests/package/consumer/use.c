/* The smallest user in C: an expand of one token, checked. */
#include <flashmhc/flashmhc.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  fmhc_target target;
  fmhc_diag diag;
  fmhc_problem problem;
  fmhc_plan plan;
  fmhc_args args;
  const float embedding[3] = {1, 2, 3};
  float streams[12] = {0};
  memset(&problem, 0, sizeof problem);
  memset(&args, 0, sizeof args);
  problem.struct_size = sizeof problem;
  problem.op = FMHC_EXPAND;
  problem.streams = 4;
  problem.residual_dtype = FMHC_FP32;
  problem.projection = FMHC_CLASS_F;
  problem.hidden = 3;
  problem.max_tokens = 1;
  args.struct_size = sizeof args;
  args.residual = (fmhc_in){embedding, {1, 3}, {3, 1}, 2, FMHC_FP32};
  args.residual_out = (fmhc_out){streams, {1, 4, 3}, {12, 3, 1}, 3, FMHC_FP32};
  if (fmhc_target_query(FMHC_CPU, 0, &target, &diag) || fmhc_plan_make(&problem, &target, NULL, &plan, &diag) ||
      fmhc_run(&plan, &args, &diag)) {
    fprintf(stderr, "%s: %s\n", fmhc_code_name(diag.code), diag.text);
    return 1;
  }
  printf("flashmhc %s, %s\n", fmhc_version(), fmhc_plan_kernel(&plan, 1));
  return streams[11] == 3.0f ? 0 : 1;
}
