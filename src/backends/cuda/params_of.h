// From the tensors of a call to what kernels take.
#pragma once

#include "backends/cuda/layout.h"
#include "kernels/entry.h"

namespace fmhc::cuda {

WideIn wide(const fmhc_in& tensor);
WideOut wide(const fmhc_out& tensor);
SmallIn small(const fmhc_in& tensor);
SmallOut small(const fmhc_out& tensor);

PostParams post_params(const Launch& launch);

// Reads residual from `residual` (seam: from what post has just written) and writes to `out`.
ProjectParams project_params(const Launch& launch, const WideIn& residual, const Partials& out);
FinishParams finish_params(const Launch& launch, const WideIn& residual, const Partials& in, FinishMode mode);

// The caller's partial sums of project and finish.
Partials partials_out(const fmhc_args& args);
Partials partials_given(const fmhc_args& args);

WideIn as_input(const WideOut& tensor);

}  // namespace fmhc::cuda
