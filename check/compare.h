// Elementwise comparison of one tensor. NaN and infinity are compared before any number: they must be in the
// same places.
#pragma once

#include "check/report.h"

namespace fmhc::check {

// Shape of the tensor in the call.
TensorReport start_report(const char* tensor, const Case& call);

// |got - wanted| <= bound. A bound of infinity demands nothing but a number.
void compare_bound(const Values& got, const Values& wanted, const Values& bound, TensorReport* report);

// low <= got <= high, which are already rounded to the storage format; `wanted` is not.
void compare_interval(const Values& got, const Values& wanted, const Values& low, const Values& high,
                      TensorReport* report);

// |got - wanted| / |wanted| <= limit, as norms of the whole tensor; the worst element is the farthest one.
void compare_norm(const Values& got, const Values& wanted, double limit, TensorReport* report);

// The same numbers, -0 and 0 included as equal.
void compare_equal(const Values& got, const Values& wanted, TensorReport* report);

}  // namespace fmhc::check
