// Names, presets and what this build is.
#include <cstdio>
#include <cstring>
#include <iterator>

#include "core/status.h"
#include "device/target.h"
#include "kernels/entry.h"

#define FMHC_TEXT_(x) #x
#define FMHC_TEXT(x) FMHC_TEXT_(x)

namespace fmhc {
namespace {

constexpr const char* kVersion =
    FMHC_TEXT(FMHC_VERSION_MAJOR) "." FMHC_TEXT(FMHC_VERSION_MINOR) "." FMHC_TEXT(FMHC_VERSION_PATCH);

// Constants of released configurations: hc_eps 1e-6, hc_sinkhorn_iters 20, post multiplier 2; rms_norm_eps
// differs. "paper" keeps the same rounds; its report states no eps, so ours are the models'.
struct Preset {
  const char* name;
  fmhc_consts consts;
  int32_t carried_pre;
};

constexpr Preset kPresets[] = {
    {"deepseek_v4", {1e-6f, 1e-6f, 1e-6f, 2.0f, 1e-6f, 20}, 0},
    {"deepseek_v41", {1e-20f, 1e-6f, 1e-6f, 2.0f, 1e-20f, 20}, 1},
    {"glm5", {1e-5f, 1e-6f, 1e-6f, 2.0f, 1e-5f, 20}, 0},
    {"paper", {1e-6f, 1e-6f, 1e-6f, 2.0f, 1e-6f, 20}, 0},
};

// Lists the names of a table into a message buffer.
template <typename Table>
void join_names(const Table& table, char* text, size_t capacity) {
  text[0] = '\0';
  size_t used = 0;
  for (const auto& row : table) {
    const int wrote = std::snprintf(text + used, capacity - used, "%s%s", used == 0 ? "" : ", ", row.name);
    if (wrote < 0 || used + static_cast<size_t>(wrote) >= capacity) return;
    used += static_cast<size_t>(wrote);
  }
}

}  // namespace
}  // namespace fmhc

using namespace fmhc;

int32_t fmhc_target_named(const char* name, fmhc_target* out, fmhc_diag* diag) {
  if (name == nullptr || out == nullptr)
    return fail(diag, FMHC_INVALID, "%s is NULL", name == nullptr ? "name" : "out");
  if (std::strcmp(name, "cpu") == 0) return query_cpu(0, out, diag);
  for (const NamedTarget& target : named_targets()) {
    if (std::strcmp(name, target.name) == 0) {
      *out = target.target;
      return FMHC_OK;
    }
  }
  char names[200];
  join_names(named_targets(), names, sizeof names);
  return fail(diag, FMHC_INVALID, "target \"%.32s\" is unknown; accepted: cpu, %s", name, names);
}

int32_t fmhc_preset(const char* model, fmhc_problem* inout, fmhc_diag* diag) {
  if (model == nullptr || inout == nullptr) {
    return fail(diag, FMHC_INVALID, "%s is NULL", model == nullptr ? "model" : "inout");
  }
  for (const Preset& preset : kPresets) {
    if (std::strcmp(model, preset.name) == 0) {
      inout->consts = preset.consts;
      inout->carried_pre = preset.carried_pre;
      return FMHC_OK;
    }
  }
  char names[200];
  join_names(kPresets, names, sizeof names);
  return fail(diag, FMHC_INVALID, "model \"%.32s\" is unknown; accepted: %s", model, names);
}

const char* fmhc_version(void) {
  return kVersion;
}

int32_t fmhc_abi_version(void) {
  return FMHC_ABI;
}

const char* fmhc_code_name(int32_t code) {
  static constexpr const char* kNames[] = {"FMHC_OK",       "FMHC_INVALID",       "FMHC_UNSUPPORTED",
                                           "FMHC_RESOURCE", "FMHC_DEVICE_BEFORE", "FMHC_DEVICE_STICKY",
                                           "FMHC_INTERNAL"};
  return code >= 0 && code < static_cast<int32_t>(std::size(kNames)) ? kNames[code] : "unknown";
}

const char* fmhc_build_info(void) {
  return "{\"version\": \"" FMHC_TEXT(FMHC_VERSION_MAJOR) "." FMHC_TEXT(FMHC_VERSION_MINOR) "." FMHC_TEXT(
      FMHC_VERSION_PATCH) "\", \"abi\": " FMHC_TEXT(FMHC_ABI) ", \"commit\": \"" FMHC_BUILD_COMMIT
                                                              "\", \"compiler\": \"" FMHC_BUILD_COMPILER
                                                              "\", \"cuda\": \"" FMHC_BUILD_CUDA "\"}";
}
