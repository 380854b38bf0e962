// seam: post, then the next site's pre of the residual as it was stored.
#include "backends/ref/entries.h"
#include "backends/ref/steps.h"

namespace fmhc::ref {

int32_t launch_seam(const Launch& launch, fmhc_diag*) {
  return with_storage(launch.problem.residual_dtype, [&]<typename T>(Tag<T>) {
    const auto written = view<T, 3>(launch.args.residual_out);
    const View<const T, 3> streams{written.data, {written.stride[0], written.stride[1], written.stride[2]}};
    for (int64_t t = 0; t < launch.tokens; ++t) {
      post_token<T>(launch, t);
      finish_token(launch, streams, t, project_token(launch.problem, streams, launch.args.fn, t));
    }
    return int32_t{FMHC_OK};
  });
}

}  // namespace fmhc::ref
