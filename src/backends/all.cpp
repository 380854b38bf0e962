// The one ordered list of backends. Each gives its rows as entries.inc; the reference comes last.
#include "kernels/entry.h"

#include "backends/cpu/entries.h"
#include "backends/cuda/entries.h"
#include "backends/ref/entries.h"

namespace fmhc {
namespace {

constexpr KernelEntry kKernels[] = {
#include "backends/cuda/entries.inc"
#include "backends/cpu/entries.inc"
#include "backends/ref/entries.inc"
};

}  // namespace

std::span<const KernelEntry> all_kernels() {
  return kKernels;
}

}  // namespace fmhc
