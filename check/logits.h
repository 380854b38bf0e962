// The logits of a site and how far a kernel's may be from them: the error of dot_mix and of the RMS factor,
// propagated. Everything later (coefficients, layer input) is bounded through `delta`.
#pragma once

#include <string>

#include "check/limits.h"
#include "check/run_case.h"

namespace fmhc::check {

struct Logits {
  Values dot;     // [T,N] sum over all slices
  Values sqrsum;  // [T]
  Values z;       // [T,N] dot times RMS factor times scale, without base
  Values delta;   // [T,N] bound of the error of z + base
};

// Partials of project, exact, and the bounds of what a kernel may make of them.
struct Partials {
  Values dot, dot_bound;        // [S,T,N]
  Values sqrsum, sqrsum_bound;  // [S,T]
};

// Of finish, pre and head; of a seam, give the pre of its second half. Returns the oracle's error, or "".
std::string make_logits(const Case& call, const Arithmetic& arithmetic, const Reference& reference,
                        Logits* out);
std::string make_partials(const Case& project, const Arithmetic& arithmetic, const Reference& reference,
                          Partials* out);

Values magnitudes(Values values);
// The same call with other options off, as another operator.
Case as_operator(const Case& call, int32_t op);

}  // namespace fmhc::check
