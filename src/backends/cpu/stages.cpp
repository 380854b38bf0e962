#include "backends/cpu/stages.h"

namespace fmhc::cpu {

const Stages& stages_of(Isa isa) {
  switch (isa) {
#define FMHC_CPU_CASE(name, space)                                                                        \
  case Isa::name: {                                                                                       \
    static constexpr Stages kStages = {space::mix, space::collapse, space::project, space::coefficients}; \
    return kStages;                                                                                       \
  }
    FMHC_CPU_BUILT(FMHC_CPU_CASE)
#undef FMHC_CPU_CASE
    default:
      break;
  }
  static constexpr Stages kNone = {};
  return kNone;
}

}  // namespace fmhc::cpu
