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
