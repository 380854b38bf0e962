#include "core/status.h"

#include <cstdarg>
#include <cstdio>

namespace fmhc {

int32_t fail(fmhc_diag* diag, int32_t code, const char* format, ...) {
  if (diag == nullptr) return code;
  diag->code = code;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(diag->text, sizeof diag->text, format, arguments);
  va_end(arguments);
  return code;
}

}  // namespace fmhc
