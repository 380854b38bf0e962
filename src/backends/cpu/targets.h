// Which Highway targets a file of stages is compiled for. To be included before hwy/foreach_target.h.
// The baseline is lifted to SSE4, which the table still checks at run time, so that no scalar target is made.
#pragma once

#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_SSE4
#elif defined(__aarch64__)
// Scalable vectors cannot be kept in arrays, which the register tiles need.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
