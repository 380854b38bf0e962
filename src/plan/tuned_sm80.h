// Points measured on sm_80 cards, by `flashmhc bench`.
#pragma once

#include <array>

#include "plan/tuned.h"

namespace fmhc {

inline constexpr std::array<TunedPoint, 0> kTunedSm80{};

}  // namespace fmhc
