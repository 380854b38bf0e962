// Backend `cuda`: the rows of the table. What a kernel can do (fit) and what memory it needs is host C++ and
// always compiled; without FMHC_CUDA the entry points are null and say so.
#pragma once

#include "kernels/entry.h"

namespace fmhc::cuda {

// Family `generic`: every problem on fp16, bf16 and fp32 storage. Family `portable`: the released models'
// shapes.
int32_t fit_generic(const Problem& problem, const Target& target, fmhc_diag* why);
int32_t fit_vector(const Problem& problem, const Target& target, fmhc_diag* why);
int32_t fit_tensor_core(const Problem& problem, const Target& target, fmhc_diag* why);
int32_t fit_seam(const Problem& problem, const Target& target, fmhc_diag* why);
int32_t fit_head_cluster(const Problem& problem, const Target& target, fmhc_diag* why);
int32_t fit_finish(const Problem& problem, const Target& target, fmhc_diag* why);

// What the one-launch families ask for alike.
int32_t fit_one_launch(const Problem& problem, const Target& target, fmhc_diag* why);

// Family `cluster`: one launch for many tokens.
int32_t fit_cluster(const Problem& problem, const Target& target, fmhc_diag* why);
size_t cluster_packed_bytes(const Problem& problem, const Target& target);

// Family `decode`: one cooperative launch for few tokens.
int32_t fit_decode(const Problem& problem, const Target& target, fmhc_diag* why);
uint32_t decode_config(const Problem& problem, const Target& target, int64_t tokens);
size_t decode_state_bytes(const Problem& problem, const Target& target);

size_t partials_bytes(const Problem& problem, const Target& target, int64_t tokens, int32_t split_k);
size_t packed_bytes(const Problem& problem, const Target& target);

using LaunchFn = int32_t(const Launch& launch, fmhc_diag* diag);
using PrepareFn = int32_t(const Problem& problem, const Target& target, fmhc_diag* diag);
using InitFn = int32_t(const Problem& problem, const Target& target, void* state, void* stream,
                       fmhc_diag* diag);
using PackFn = int32_t(const Problem& problem, const Target& target, const fmhc_in& fn, void* packed,
                       void* stream, fmhc_diag* diag);

#if FMHC_HAVE_CUDA
inline constexpr const char* kNotBuilt = nullptr;
#define FMHC_CUDA_ENTRY(type, name) type name
#else
inline constexpr const char* kNotBuilt = "not built (FMHC_CUDA was OFF)";
#define FMHC_CUDA_ENTRY(type, name) inline constexpr type* name = nullptr
#endif
FMHC_CUDA_ENTRY(LaunchFn, launch_expand);
FMHC_CUDA_ENTRY(LaunchFn, launch_post_generic);
FMHC_CUDA_ENTRY(LaunchFn, launch_project_generic);
FMHC_CUDA_ENTRY(LaunchFn, launch_finish_generic);
FMHC_CUDA_ENTRY(LaunchFn, launch_contract_generic);
FMHC_CUDA_ENTRY(LaunchFn, launch_pre_generic);
FMHC_CUDA_ENTRY(LaunchFn, launch_head_generic);
FMHC_CUDA_ENTRY(LaunchFn, launch_seam_generic);
FMHC_CUDA_ENTRY(LaunchFn, launch_post);
FMHC_CUDA_ENTRY(LaunchFn, launch_project);
FMHC_CUDA_ENTRY(LaunchFn, launch_finish);
FMHC_CUDA_ENTRY(LaunchFn, launch_contract);
FMHC_CUDA_ENTRY(LaunchFn, launch_pre);
FMHC_CUDA_ENTRY(LaunchFn, launch_head);
FMHC_CUDA_ENTRY(LaunchFn, launch_seam);
FMHC_CUDA_ENTRY(LaunchFn, launch_seam_split);
FMHC_CUDA_ENTRY(LaunchFn, launch_head_cluster);
FMHC_CUDA_ENTRY(PrepareFn, prepare_generic);
FMHC_CUDA_ENTRY(PrepareFn, prepare_vector);
FMHC_CUDA_ENTRY(PrepareFn, prepare_head_cluster);
FMHC_CUDA_ENTRY(PrepareFn, prepare_tensor_core);
FMHC_CUDA_ENTRY(PackFn, pack);
FMHC_CUDA_ENTRY(LaunchFn, launch_decode);
FMHC_CUDA_ENTRY(PrepareFn, prepare_decode);
FMHC_CUDA_ENTRY(InitFn, init_decode_state);
FMHC_CUDA_ENTRY(LaunchFn, launch_cluster);
FMHC_CUDA_ENTRY(PrepareFn, prepare_cluster);
FMHC_CUDA_ENTRY(PackFn, pack_cluster);
#undef FMHC_CUDA_ENTRY

}  // namespace fmhc::cuda
