#include "core/mutant.h"

#include "flashmhc/flashmhc.h"

namespace fmhc {

Mutant active_mutant = Mutant::kNone;

}  // namespace fmhc

extern "C" {

// Not thread-safe: to be called before anything runs.
FMHC_API void fmhc_test_set_mutant(int number);
FMHC_API const char* fmhc_test_mutant_name(int number);  // NULL past the last one

void fmhc_test_set_mutant(int number) {
  fmhc::active_mutant = static_cast<fmhc::Mutant>(number);
}

const char* fmhc_test_mutant_name(int number) {
  switch (number) {
#define FMHC_MUTANT_CASE(value, name, text) \
  case value:                               \
    return text;
    FMHC_MUTANT_LIST(FMHC_MUTANT_CASE)
#undef FMHC_MUTANT_CASE
    default:
      return nullptr;
  }
}

}  // extern "C"
