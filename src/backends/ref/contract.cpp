// contract: the mean of the streams, or their sum weighted by the carried mix. The mean is a sum divided
// once: weights of 1/n would round when n is no power of two.
#include <algorithm>

#include "backends/ref/entries.h"
#include "backends/ref/steps.h"

namespace fmhc::ref {

int32_t launch_contract(const Launch& launch, fmhc_diag*) {
  return with_storage(launch.problem.residual_dtype, [&]<typename T>(Tag<T>) {
    const auto streams = view<T, 3>(launch.args.residual);
    for (int64_t t = 0; t < launch.tokens; ++t) {
      double mix[kMaxStreams];
      std::fill_n(mix, kMaxStreams, 1.0 / launch.problem.streams);
      if (launch.problem.carried_pre != 0) read_carried<T>(launch, t, mix);
      collapse_token(launch, streams, t, mix);
    }
    return int32_t{FMHC_OK};
  });
}

}  // namespace fmhc::ref
