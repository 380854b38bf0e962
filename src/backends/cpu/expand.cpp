// expand: the embedding copied into every stream of its token.
#include <cstring>

#include "backends/cpu/entries.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/workers.h"

namespace fmhc::cpu {

int32_t launch_expand(const Stages&, const Launch& launch, fmhc_diag* diag) {
  FMHC_TRY(check_executor(launch.args.executor, diag));
  const Problem& problem = launch.problem;
  const auto row_bytes = static_cast<size_t>(problem.hidden * dtype_bytes(problem.residual_dtype));
  const Rows from(launch.args.residual);
  const OutRows to(launch.args.residual_out);
  return for_tokens(launch, [&](int64_t t) {
    for (int32_t j = 0; j < problem.streams; ++j) std::memcpy(to.at(t, j), from.at(t), row_bytes);
  });
}

}  // namespace fmhc::cpu
