// Seeded inputs. The families differ in the faults that they make visible.
#pragma once

#include "case.h"
#include "parallel.cuh"

namespace fmhc_gpu {

struct FillSlot {
  View view;
  SlotId slot;
  Family family;
  uint64_t seed;
  int64_t flat;  // K
  int64_t hidden;
  int64_t splits;

  FMHC_HD double residual_value(int64_t index) const {
    const int64_t h = index % hidden;
    const int64_t t = index / flat;
    const double normal = gauss(seed, static_cast<uint64_t>(index));
    switch (family) {
      case Family::kMassive: {  // one channel in a hundred is 100 to 1000 times larger
        const double lot = uniform(seed + 77, static_cast<uint64_t>(h));
        return lot < 0.01 ? normal * (100 + 90000 * lot) : normal;
      }
      case Family::kLogNormal: {
        const double magnitude = exp(1.5 * gauss(seed + 78, static_cast<uint64_t>(index)));
        return copysign(magnitude < 1e4 ? magnitude : 1e4, normal);
      }
      case Family::kInteger:
        return floor(uniform(seed, static_cast<uint64_t>(index)) * 17) - 8;
      case Family::kTiny:  // every other row is zero, the rest tiny
        return t % 2 == 0 ? 0.0 : normal * 1e-6;
      case Family::kCancel: {  // streams in pairs of opposite sign, apart by 1e-2 .. 1e-4
        const int64_t j = index / hidden % (flat / hidden);
        const double partner = gauss(seed, static_cast<uint64_t>(t * flat + j / 2 * hidden + h));
        return j % 2 == 0 ? partner
                          : -partner * (1 + 0.01 * uniform(seed + 79, static_cast<uint64_t>(index)));
      }
      default:
        return normal;
    }
  }

  FMHC_HD double value(int64_t index) const {
    const auto i = static_cast<uint64_t>(index);
    const double logit_sd = family == Family::kPeaked ? 6.0 : family == Family::kCancel ? 0.0 : 1.0;
    switch (slot) {
      case kResidual:
        return residual_value(index);
      case kFn:
        return family == Family::kInteger ? floor(uniform(seed, i) * 17) - 8
                                          : gauss(seed, i) / sqrt(static_cast<double>(flat));
      case kScale:
        return family == Family::kInteger ? 0.01 : logit_sd * (0.7 + 0.6 * uniform(seed, i));
      case kBase:
        return family == Family::kCancel ? 0.5 : (family == Family::kHuge ? 80.0 : 1.0) * gauss(seed, i);
      case kNormWeight:
        return 1 + 0.2 * gauss(seed, i);
      case kPostIn:
        return 2 * uniform(seed, i);
      case kCombIn:  // rows and columns unlike one another
        return uniform(seed, i) * uniform(seed + 80, i);
      case kPreIn:
        return family == Family::kCancel ? 0.5 : uniform(seed, i) + 1e-6;
      case kDotMixIn:
        return gauss(seed, i) / sqrt(static_cast<double>(splits));
      case kSqrsumIn:
        return static_cast<double>(flat) / static_cast<double>(splits) * (0.5 + uniform(seed, i));
      default:
        return gauss(seed, i);
    }
  }

  FMHC_HD void operator()(int64_t index) const {
    store_element(view.data, view.offset(index), view.dtype, value(index));
  }
};

struct PoisonView {
  View view;
  FMHC_HD void operator()(int64_t index) const {
    auto* bytes = static_cast<unsigned char*>(view.data) + view.offset(index) * element_bytes(view.dtype);
    for (int b = 0; b < element_bytes(view.dtype); ++b) bytes[b] = 0xff;
  }
};

}  // namespace fmhc_gpu
