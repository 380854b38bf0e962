// head: one logit a stream, and the collapse by their sigmoids.
#include "backends/ref/entries.h"
#include "backends/ref/steps.h"

namespace fmhc::ref {

int32_t launch_head(const Launch& launch, fmhc_diag*) {
  return with_storage(launch.problem.residual_dtype, [&]<typename T>(Tag<T>) {
    using Stored = StoredCoefficient<T>;
    const auto streams = view<T, 3>(launch.args.residual);
    const auto pre_mix = view<Stored, 2>(launch.args.pre_mix);
    for (int64_t t = 0; t < launch.tokens; ++t) {
      const Statistics statistics = project_token(launch.problem, streams, launch.args.fn, t);
      double mix[kMaxStreams];
      head_mix(launch.problem, statistics, launch.args.scale, launch.args.base, mix);
      for (int j = 0; pre_mix && j < launch.problem.streams; ++j) *pre_mix.at(t, j) = narrow<Stored>(mix[j]);
      collapse_token(launch, streams, t, mix);
    }
    return int32_t{FMHC_OK};
  });
}

}  // namespace fmhc::ref
