#include "device/target.h"

#include "ops/read_struct.h"

namespace fmhc {
namespace {

constexpr fmhc_target cuda(int32_t arch, int32_t units, int64_t smem_kib, int64_t l2_mib) {
  return {sizeof(fmhc_target), FMHC_CUDA, 0, arch, units, 0, smem_kib << 10, l2_mib << 20};
}

constexpr fmhc_target cpu(int32_t features, int32_t threads, int64_t l2_kib) {
  return {sizeof(fmhc_target), FMHC_CPU, 0, features, threads, 0, 0, l2_kib << 10};
}

constexpr int32_t kAvx2 = FMHC_CPU_SSE4 | FMHC_CPU_AVX2;
constexpr int32_t kAvx512 = kAvx2 | FMHC_CPU_AVX3 | FMHC_CPU_AVX3_DL;

// Multiprocessors, shared memory a block may opt in to and L2 from the vendors' data sheets.
constexpr NamedTarget kTargets[] = {
    {"a100", cuda(80, 108, 163, 40)},         {"a10", cuda(86, 72, 99, 6)},
    {"l40s", cuda(89, 142, 99, 96)},          {"rtx4090", cuda(89, 128, 99, 72)},
    {"h20", cuda(90, 78, 227, 60)},           {"h100", cuda(90, 132, 227, 50)},
    {"h200", cuda(90, 132, 227, 50)},         {"b200", cuda(100, 148, 227, 126)},
    {"b300", cuda(103, 160, 227, 126)},       {"rtx5090", cuda(120, 170, 99, 96)},
    {"cpu-sse4", cpu(FMHC_CPU_SSE4, 8, 512)}, {"cpu-avx2", cpu(kAvx2, 16, 1024)},
    {"cpu-avx512", cpu(kAvx512, 32, 2048)},   {"cpu-neon", cpu(FMHC_CPU_NEON, 32, 1024)},
};

}  // namespace

std::span<const NamedTarget> named_targets() {
  return kTargets;
}

int32_t read_target(const fmhc_target* given, fmhc_target* out, fmhc_diag* diag) {
  FMHC_TRY(read_struct(given, "target", out, diag));
  if (out->device_kind != FMHC_CPU && out->device_kind != FMHC_CUDA) {
    return fail(diag, FMHC_INVALID, "target.device_kind is %d; accepted: CPU (1) or CUDA (2)",
                out->device_kind);
  }
  if (out->device_index < 0) {
    return fail(diag, FMHC_INVALID, "target.device_index is %d; accepted: >= 0", out->device_index);
  }
  if (out->num_units < 1) {
    return fail(diag, FMHC_INVALID, "target.num_units is %d; accepted: >= 1", out->num_units);
  }
  return FMHC_OK;
}

}  // namespace fmhc
