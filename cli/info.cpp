// flashmhc info: the build, this machine, every kernel and why one cannot run here, every environment
// variable.
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/problem_options.h"

namespace fmhc::cli {
namespace {

constexpr Named kFeatures[] = {{"sse4", FMHC_CPU_SSE4}, {"avx2", FMHC_CPU_AVX2},
                               {"avx3", FMHC_CPU_AVX3}, {"avx3_dl", FMHC_CPU_AVX3_DL},
                               {"neon", FMHC_CPU_NEON}, {"sve", FMHC_CPU_SVE}};
constexpr int kMostDevices = 64;

Json describe(const fmhc_target& target) {
  Json entry = {{"kind", target.device_kind == FMHC_CPU ? "cpu" : "cuda"}, {"index", target.device_index}};
  if (target.device_kind == FMHC_CPU) {
    Json features = Json::array();
    for (const Named& feature : kFeatures) {
      if ((target.arch & feature.value) != 0) features.push_back(feature.name);
    }
    entry["isa"] = features;
  } else {
    entry["arch"] = target.arch;
    entry["smem_bytes"] = target.smem_bytes;
  }
  entry["units"] = target.num_units;
  entry["cache_bytes"] = target.cache_bytes;
  return entry;
}

Json devices(std::string* no_cuda) {
  Json list = Json::array();
  fmhc_target target{};
  fmhc_diag diag{};
  require_ok(fmhc_target_query(FMHC_CPU, 0, &target, &diag), diag);
  list.push_back(describe(target));
  for (int index = 0; index < kMostDevices; ++index) {
    if (fmhc_target_query(FMHC_CUDA, index, &target, &diag) != FMHC_OK) {
      if (index == 0) *no_cuda = diag.text;
      break;
    }
    list.push_back(describe(target));
  }
  return list;
}

// A row of the kernel table: usable if a plain bf16 problem of 4 x 4096 would be planned on it here.
Json describe_kernel(const Json& candidate, const std::string& no_cuda) {
  Json row = {{"name", candidate["kernel"]}, {"backend", candidate["backend"]}};
  const bool no_device = candidate["backend"] == "cuda" && !no_cuda.empty();
  const bool built = candidate["not_built"].is_null();
  const bool usable = built && !no_device && candidate["eligible"].get<bool>();
  row["usable"] = usable;
  if (usable) return row;
  row["reason"] = !built ? candidate["not_built"] : no_device ? Json(no_cuda) : candidate["reason"];
  return row;
}

Json kernels(const std::string& no_cuda) {
  fmhc_diag diag{};
  fmhc_target cpu{};
  fmhc_target cuda{};
  require_ok(fmhc_target_query(FMHC_CPU, 0, &cpu, &diag), diag);
  if (!no_cuda.empty() || fmhc_target_query(FMHC_CUDA, 0, &cuda, &diag) != FMHC_OK) {
    require_ok(fmhc_target_named("h200", &cuda, &diag), diag);
  }
  fmhc_hints hints{};
  hints.struct_size = sizeof hints;
  Json list = Json::array();
  for (const Named& op : op_names()) {
    ProblemOptions options;
    options.op = op.name;
    const fmhc_problem problem = options.problem();
    const Json on_cpu = explain_plan(problem, cpu, hints)["candidates"];
    const Json on_cuda = explain_plan(problem, cuda, hints)["candidates"];
    for (size_t index = 0; index < on_cpu.size(); ++index) {
      const Json& candidate = (on_cpu[index]["backend"] == "cuda" ? on_cuda : on_cpu)[index];
      list.push_back(describe_kernel(candidate, no_cuda));
    }
  }
  return list;
}

Json environment_table(const Environment& environment) {
  Json list = Json::array();
  for (const Variable& variable : variables()) {
    const std::string& value = environment.value(variable.name);
    list.push_back({{"name", variable.name},
                    {"value", environment.is_set(variable.name) ? Json(value) : Json(nullptr)},
                    {"accepted", variable.accepted},
                    {"read_by", variable.read_by},
                    {"meaning", variable.meaning}});
  }
  return list;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "-";
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& item : value) text += (text.empty() ? "" : " ") + text_of(item);
  return text;
}

void print_text(const Json& info) {
  for (const auto& [key, value] : info["build"].items()) std::cout << key << ": " << text_of(value) << '\n';
  std::cout << "\ndevices\n";
  for (const Json& device : info["devices"]) {
    std::cout << " ";
    for (const auto& [key, value] : device.items()) std::cout << ' ' << key << '=' << text_of(value);
    std::cout << '\n';
  }
  if (info.contains("no_cuda")) std::cout << "  no CUDA device: " << text_of(info["no_cuda"]) << '\n';
  std::cout << "\nkernels\n";
  for (const Json& kernel : info["kernels"]) {
    std::cout << "  " << text_of(kernel["name"]);
    if (kernel.contains("reason")) std::cout << ": not usable here: " << text_of(kernel["reason"]);
    std::cout << '\n';
  }
  std::cout << '\n';
  std::vector<std::vector<std::string>> rows = {{"variable", "value", "accepted", "read by", "meaning"}};
  for (const Json& row : info["environment"]) {
    rows.push_back({text_of(row["name"]), text_of(row["value"]), text_of(row["accepted"]),
                    text_of(row["read_by"]), text_of(row["meaning"])});
  }
  print_table(rows);
}

}  // namespace

Command add_info(CLI::App& app, const Environment& environment) {
  auto json = std::make_shared<bool>(false);
  add_json_flag(app, json.get());
  return [json, &environment] {
    std::string no_cuda;
    Json info = {{"build", Json::parse(fmhc_build_info())}};
    info["devices"] = devices(&no_cuda);
    if (!no_cuda.empty()) info["no_cuda"] = no_cuda;
    info["kernels"] = kernels(no_cuda);
    info["environment"] = environment_table(environment);
    *json ? print_json(info) : print_text(info);
    return kExitOk;
  };
}

}  // namespace fmhc::cli
