// post: the new residual of a site.
#include "backends/ref/entries.h"
#include "backends/ref/steps.h"

namespace fmhc::ref {

int32_t launch_post(const Launch& launch, fmhc_diag*) {
  return with_storage(launch.problem.residual_dtype, [&]<typename T>(Tag<T>) {
    for (int64_t t = 0; t < launch.tokens; ++t) post_token<T>(launch, t);
    return int32_t{FMHC_OK};
  });
}

}  // namespace fmhc::ref
