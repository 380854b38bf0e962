// Runs a Case through the C interface: encodes the inputs, plans, runs once, decodes the outputs. Outputs are
// filled with NaN before, so that what a kernel does not write shows.
#pragma once

#include <functional>
#include <string>

#include "check/tensors.h"

namespace fmhc::check {

struct RunResult {
  int32_t code = FMHC_OK;
  std::string text;    // of the diag, when code is not FMHC_OK
  std::string kernel;  // that ran
  Tensors out;
};

struct RunOptions {
  const char* kernel = nullptr;             // hint: a kernel's name or prefix
  const fmhc_executor* executor = nullptr;  // threads, CPU only
};

// Runs on the host CPU. project uses call.splits slices.
RunResult run_case(const Case& call, const RunOptions& options = {});

// Anything that computes a Case without rounding: the outputs of an fp64 residual.
using Reference = std::function<RunResult(const Case&)>;

// Backend `ref` with the residual, the coefficients and the partials widened to fp64.
RunResult run_reference(const Case& call);

}  // namespace fmhc::check
