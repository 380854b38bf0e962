// Status codes with a reason. A function that can fail returns an fmhc_code and fills the caller's fmhc_diag,
// if there is one; text is built on the failing path only. No exceptions, no allocation.
#pragma once

#include <cstdint>

#include "flashmhc/flashmhc.h"

#if defined(__GNUC__)
#define FMHC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define FMHC_PRINTF(text, first)
#endif

namespace fmhc {

// Writes `code` and the formatted text (cut to fit) and returns `code`.
int32_t fail(fmhc_diag* diag, int32_t code, const char* format, ...) FMHC_PRINTF(3, 4);

}  // namespace fmhc

// Passes a failure on to the caller.
#define FMHC_TRY(expression)                                                                        \
  do {                                                                                              \
    if (const int32_t fmhc_try_code = (expression); fmhc_try_code != FMHC_OK) return fmhc_try_code; \
  } while (false)
