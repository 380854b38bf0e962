// expand: residual_out[t,j,h] = residual[t,h].
#include "backends/ref/dispatch.h"
#include "backends/ref/entries.h"
#include "core/tensor.h"

namespace fmhc::ref {

int32_t launch_expand(const Launch& launch, fmhc_diag*) {
  return with_storage(launch.problem.residual_dtype, [&]<typename T>(Tag<T>) {
    const auto embedding = view<T, 2>(launch.args.residual);
    const auto streams = view<T, 3>(launch.args.residual_out);
    for (int64_t t = 0; t < launch.tokens; ++t) {
      for (int32_t j = 0; j < launch.problem.streams; ++j) {
        for (int64_t h = 0; h < launch.problem.hidden; ++h) *streams.at(t, j, h) = *embedding.at(t, h);
      }
    }
    return int32_t{FMHC_OK};
  });
}

}  // namespace fmhc::ref
