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

// Four streams in 16-byte accesses; finish by the number of them a thread holds of each stream (1, 2, 4).
struct VectorKernels {
  const void *post, *finish[3];
};
VectorKernels vector_kernels_bf16();
VectorKernels vector_kernels_fp16();
VectorKernels vector_kernels_fp32();

// Four streams on tensor cores, by the number of pieces of fn; seam for bf16 alone.
struct TensorCoreKernels {
  const void *project, *head, *seam;                       // the slice's fn in shared memory
  const void *project_direct, *head_direct, *seam_direct;  // slices that do not fit there
};
TensorCoreKernels tensor_core_kernels_bf16(int pieces);
TensorCoreKernels tensor_core_kernels_fp16(int pieces);
TensorCoreKernels tensor_core_kernels_fp32(int pieces);

// One launch of head, by the CTAs of a cluster: 1, 2, 4, 8.
const void* head_cluster_kernel_of(int cluster);

struct PackKernels {
  const void *pack, *fence;
};
PackKernels pack_kernels();

}  // namespace fmhc::cuda
