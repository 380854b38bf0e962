// project: dot_mix[s,t,:] and sqrsum[s,t], the partials of slice s of K.
#include "backends/ref/entries.h"
#include "backends/ref/steps.h"

namespace fmhc::ref {

int32_t launch_project(const Launch& launch, fmhc_diag*) {
  return with_storage(launch.problem.residual_dtype, [&]<typename T>(Tag<T>) {
    using Stored = StoredCoefficient<T>;
    const auto streams = view<T, 3>(launch.args.residual);
    const auto dot_mix = view<Stored, 3>(launch.args.dot_mix);
    const auto sqrsum = view<Stored, 2>(launch.args.sqrsum);
    for (int32_t s = 0; s < launch.split_k; ++s) {
      const Slice slice = slice_of(flat_width(launch.problem), launch.split_k, s);
      for (int64_t t = 0; t < launch.tokens; ++t) {
        const Statistics sums = project_token(launch.problem, streams, launch.args.fn, t, slice);
        for (int o = 0; o < logit_count(launch.problem); ++o) {
          *dot_mix.at(s, t, o) = narrow<Stored>(sums.dot[o]);
        }
        *sqrsum.at(s, t) = narrow<Stored>(sums.square_sum);
      }
    }
    return int32_t{FMHC_OK};
  });
}

}  // namespace fmhc::ref
