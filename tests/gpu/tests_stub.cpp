#include "commands.h"
namespace fmhc_gpu {
bool run_tests(const Options&) {
  return false;
}
bool run_sanitize(const Options&) {
  return false;
}
}  // namespace fmhc_gpu
