// The verdict on one call: its outputs against the fp64 oracle, by the bounds of limits.h. A seam is judged
// as its two halves, the second on the residual that the first made; the layer input is judged with the
// coefficients that the kernel reports, so that each stage has exact inputs and tight bounds.
#pragma once

#include "check/limits.h"
#include "check/report.h"
#include "check/run_case.h"

namespace fmhc::check {

struct Options {
  Arithmetic arithmetic;
  bool statistics = true;  // off for constant, repeated or otherwise structured data
  Reference reference = run_reference;
};

Report check_outputs(const Case& call, const Tensors& got, const Options& options = {});

// The same for tensors in memory (host), any strides. When residual_out is residual, give `args` with the
// residual as it was before the call.
Report check_args(const fmhc_problem& problem, const fmhc_args& args, const Options& options = {});

}  // namespace fmhc::check
