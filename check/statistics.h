// Bounds over a whole tensor: they see one-sided errors that every element hides within its own bound. They
// assume that rounding errors are independent, so they are for random data, not for constants or repeats.
#pragma once

#include "check/report.h"

namespace fmhc::check {

// Of a tensor in 16-bit storage. `slack` is how far each unrounded result may be off, `magnitude` the sum of
// its terms' magnitudes; with `exact_inputs` false the share of misrounded elements says nothing.
void judge_rounding(const Values& got, const Values& wanted, const Values& slack, const Values& magnitude,
                    int32_t dtype, bool exact_inputs, TensorReport* report);

// Signs of the errors: z-score of the balance of positive and negative ones.
void judge_signs(const Values& got, const Values& wanted, TensorReport* report);

// Root mean square error against that of `plain`, a plain fp32 computation of the same thing.
void judge_against_plain(const Values& got, const Values& wanted, const Values& plain, TensorReport* report);

void judge_norm(double limit, TensorReport* report);
void judge_gain(const Values& got, const Values& wanted, double limit, TensorReport* report);
void judge_bias(const Values& got, const Values& wanted, double limit, TensorReport* report);
void judge_max(double measured, double limit, const char* rule, TensorReport* report);

double root_mean_square(const Values& values);

}  // namespace fmhc::check
