// The layer input: sum_j mix_j R_j rounded once, and the RMSNorm behind it.
#pragma once

#include "check/logits.h"
#include "check/report.h"

namespace fmhc::check {

// `mix` [T,n] are the weights that the kernel used, and `mix_error` what each may be off by (empty: exact).
struct CollapseInput {
  const Case* call;  // whose residual, norm and norm weight count
  Values mix, mix_error;
};

std::string check_layer_input(const CollapseInput& input, const Values& got, const Arithmetic& arithmetic,
                              bool statistics, const Reference& reference, TensorReport* report);

}  // namespace fmhc::check
