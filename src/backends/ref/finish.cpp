// finish: partials of project -> coefficients and layer input. The partials are taken as stored, widened, and
// added in ascending order in double; nothing is rounded again before the outputs.
#include "backends/ref/entries.h"
#include "backends/ref/steps.h"

namespace fmhc::ref {
namespace {

template <typename Stored>
Statistics add_partials(const Launch& launch, int64_t t) {
  const auto dot_mix = view<Stored, 3>(launch.args.dot_mix_in);
  const auto sqrsum = view<Stored, 2>(launch.args.sqrsum_in);
  Statistics total;
  for (int32_t s = 0; s < launch.split_k; ++s) {
    for (int o = 0; o < logit_count(launch.problem); ++o) {
      total.dot[o] += static_cast<double>(*dot_mix.at(s, t, o));
    }
    total.square_sum += static_cast<double>(*sqrsum.at(s, t));
  }
  return total;
}

}  // namespace

int32_t launch_finish(const Launch& launch, fmhc_diag*) {
  return with_storage(launch.problem.residual_dtype, [&]<typename T>(Tag<T>) {
    const auto streams = view<T, 3>(launch.args.residual);
    for (int64_t t = 0; t < launch.tokens; ++t) {
      finish_token(launch, streams, t, add_partials<StoredCoefficient<T>>(launch, t));
    }
    return int32_t{FMHC_OK};
  });
}

}  // namespace fmhc::ref
