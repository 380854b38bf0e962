#include "plan/plan.h"

#include <cstdint>

namespace fmhc {
namespace {

constexpr uint64_t hash_text(const char* text) {
  uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211u;
  return hash;
}

constexpr uint64_t kBuildHash = hash_text(FMHC_BUILD_COMMIT " " FMHC_BUILD_COMPILER);
const char kAnchor = 0;  // its address differs between processes

}  // namespace

uint64_t build_id() {
  return kBuildHash ^ reinterpret_cast<uintptr_t>(&kAnchor);
}

bool first_to_pack(std::span<const KernelEntry> kernels, const PlanData& plan, int64_t range) {
  const PackFn pack = kernels[plan.ranges[range].kernel].pack;
  for (int64_t before = 0; before < range; ++before) {
    if (kernels[plan.ranges[before].kernel].pack == pack) return false;
  }
  return pack != nullptr;
}

size_t packed_offset(std::span<const KernelEntry> kernels, const PlanData& plan, PackFn pack) {
  size_t offset = 0;
  for (int64_t index = 0; index < plan.num_ranges; ++index) {
    const KernelEntry& kernel = kernels[plan.ranges[index].kernel];
    if (kernel.pack == nullptr) continue;
    if (kernel.pack == pack) return offset;
    constexpr size_t kAlignment = 256;
    const size_t bytes = kernel.packed_bytes(plan.problem, plan.target);
    if (first_to_pack(kernels, plan, index)) offset += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return offset;
}

int32_t open_plan(const fmhc_plan* plan, PlanData* out, fmhc_diag* diag) {
  if (plan == nullptr) return fail(diag, FMHC_INVALID, "plan is NULL");
  if (plan->struct_size != sizeof(fmhc_plan)) {
    return fail(diag, FMHC_INVALID, "plan.struct_size is %u; expected %zu: not made by fmhc_plan_make",
                plan->struct_size, sizeof(fmhc_plan));
  }
  std::memcpy(out, plan->opaque, sizeof *out);
  if (plan->abi != FMHC_ABI || out->build_id != build_id()) {
    return fail(diag, FMHC_INVALID,
                "plan was made by another process or build of the library; make it again");
  }
  return FMHC_OK;
}

}  // namespace fmhc
