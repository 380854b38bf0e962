// pre: project and finish of one site, without rounding the projection in between.
#include "backends/ref/entries.h"
#include "backends/ref/steps.h"

namespace fmhc::ref {

int32_t launch_pre(const Launch& launch, fmhc_diag*) {
  return with_storage(launch.problem.residual_dtype, [&]<typename T>(Tag<T>) {
    const auto streams = view<T, 3>(launch.args.residual);
    for (int64_t t = 0; t < launch.tokens; ++t) {
      finish_token(launch, streams, t, project_token(launch.problem, streams, launch.args.fn, t));
    }
    return int32_t{FMHC_OK};
  });
}

}  // namespace fmhc::ref
