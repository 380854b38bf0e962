// The device functions of the backend as addresses, so that host code launches and prepares them without a
// CUDA compiler. One table a family and storage type.
#pragma once

#include <cstdint>

namespace fmhc::cuda {

struct GenericKernels {
  const void *post, *project, *finish;
};
GenericKernels generic_kernels_bf16();
GenericKernels generic_kernels_fp16();
GenericKernels generic_kernels_fp32();

// By the unit of copying.
struct ExpandKernels {
  const void *bytes2, *bytes4, *bytes16;
};
ExpandKernels expand_kernels();

}  // namespace fmhc::cuda
