// flashmhc inspect: the hyper-connection weights of a checkpoint, or all of a recorded trace: shapes, dtypes,
// statistics, and what is missing. A checkpoint lacks nothing exactly if the exit code is 0.
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/file_result.h"
#include "cli/progress.h"
#include "cli/tensor_stats.h"
#include "cli/trunk_ops.h"
#include "io/checkpoint.h"
#include "io/trace.h"

namespace fmhc::cli {
namespace {

constexpr const char* kSchema = "flashmhc-inspect-1";
constexpr size_t kMostProblems = 1000;

struct Options {
  std::string path;
  bool json = false;
};

// Opens each shard once, as long as the tensors come shard by shard.
class ShardFiles {
 public:
  explicit ShardFiles(const io::Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  const io::SafetensorsReader& get(uint32_t shard) {
    if (!open_ || shard != index_) open_.emplace(take(checkpoint_.open_shard(shard)));
    index_ = shard;
    return *open_;
  }

 private:
  const io::Checkpoint& checkpoint_;
  std::optional<io::SafetensorsReader> open_;
  uint32_t index_ = 0;
};

Json describe_tensor(const io::SafetensorsReader& file, const io::TensorInfo& tensor) {
  Json entry = {{"name", tensor.name}, {"dtype", io::dtype_name(tensor.dtype)}, {"shape", tensor.shape}};
  if (storage_dtype(tensor.dtype) == 0) return entry;
  const TensorStats stats = take(tensor_stats(file, tensor));
  const auto or_null = [&](double value) { return stats.finite() ? Json(value) : Json(nullptr); };
  entry["min"] = or_null(stats.min);
  entry["max"] = or_null(stats.max);
  entry["mean"] = or_null(stats.mean);
  entry["rms"] = or_null(stats.rms);
  entry["non_finite"] = stats.non_finite;
  return entry;
}

Json describe_sites(const io::Checkpoint& checkpoint) {
  Json sites = Json::array();
  Progress progress("sites", static_cast<int64_t>(checkpoint.sites().size()));
  ShardFiles files(checkpoint);
  for (const io::HcSite& site : checkpoint.sites()) {
    Json tensors = Json::array();
    for (const auto& part : site.parts) {
      if (!part) continue;
      Json entry = describe_tensor(files.get(part->shard), part->info);
      if (checkpoint.shards().size() > 1) entry["file"] = checkpoint.shards()[part->shard];
      tensors.push_back(std::move(entry));
    }
    sites.push_back({{"site", site.label()},
                     {"kind", io::hc_kind_name(site.kind)},
                     {"naming", site.flat_names ? "hc_attn_fn" : "attn_hc.fn"},
                     {"tensors", std::move(tensors)}});
    progress.advance();
  }
  return sites;
}

Json describe_constants(const io::TraceConstants& c) {
  Json entry = Json::object();
  for (const auto& [key, value] : io::trace_metadata(c)) entry[key] = value;
  return entry;
}

// What of a trace is not a weight of a site.
Json describe_recorded(const io::SafetensorsReader& file) {
  Json tensors = Json::array();
  Progress progress("tensors", static_cast<int64_t>(file.tensors().size()));
  for (const io::TensorInfo& tensor : file.tensors()) {
    if (!io::parse_hc_name(tensor.name)) tensors.push_back(describe_tensor(file, tensor));
    progress.advance();
  }
  return tensors;
}

Json inspect_path(const std::string& path) {
  const io::Checkpoint checkpoint = take(io::Checkpoint::open(path));
  const bool is_trace = checkpoint.shards().size() == 1 && io::is_trace(checkpoint.metadata());
  Json problems = Json::array();
  for (const io::Fault& fault : checkpoint.problems()) problems.push_back(fault_json(fault));
  Json out = {{"schema", kSchema},
              {"path", path},
              {"kind", is_trace ? "trace" : "checkpoint"},
              {"files", checkpoint.shards().size()},
              {"tensors", checkpoint.tensor_count()},
              {"streams", checkpoint.streams()},
              {"hidden", checkpoint.hidden()}};
  if (is_trace) {
    const io::SafetensorsReader file = take(checkpoint.open_shard(0));
    const io::TraceConstants constants = take(io::read_trace_constants(file.metadata(), file.path()));
    out["constants"] = describe_constants(constants);
    out["sites"] = describe_sites(checkpoint);
    out["recorded"] = describe_recorded(file);
    for (const io::Fault& fault : io::trace_problems(file, constants, kMostProblems)) {
      problems.push_back(fault_json(fault));
    }
  } else {
    out["sites"] = describe_sites(checkpoint);
  }
  out["problems"] = std::move(problems);
  return out;
}

std::string text_of(const Json& value) {
  return value.get<std::string>();
}

std::string number_text(const Json& tensor, const char* key) {
  const auto value = tensor.find(key);
  if (value == tensor.end() || value->is_null()) return "-";
  if (value->is_number_unsigned()) return std::to_string(value->get<uint64_t>());
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value->get<double>());
  return text;
}

void add_row(std::vector<std::vector<std::string>>& rows, const std::string& site, const Json& tensor) {
  std::vector<std::string> row = {site, text_of(tensor["name"]), text_of(tensor["dtype"]),
                                  tensor["shape"].dump()};
  for (const char* key : {"min", "max", "mean", "rms", "non_finite"}) row.push_back(number_text(tensor, key));
  rows.push_back(std::move(row));
}

void print_text(const Json& out) {
  std::cout << text_of(out["kind"]) << ' ' << text_of(out["path"]) << ": " << out["tensors"] << " tensors in "
            << out["files"] << (out["files"] == 1 ? " file, " : " files, ") << out["sites"].size()
            << " hyper-connection sites, " << out["streams"] << " streams, hidden size " << out["hidden"]
            << '\n';
  if (out.contains("constants")) {
    for (const auto& [key, value] : out["constants"].items()) {
      std::cout << "  " << key << ": " << text_of(value) << '\n';
    }
  }
  std::vector<std::vector<std::string>> rows = {
      {"site", "tensor", "dtype", "shape", "min", "max", "mean", "rms", "non-finite"}};
  for (const Json& site : out["sites"]) {
    for (const Json& tensor : site["tensors"]) add_row(rows, text_of(site["site"]), tensor);
  }
  if (out.contains("recorded")) {
    for (const Json& tensor : out["recorded"]) add_row(rows, "", tensor);
  }
  std::cout << '\n';
  print_table(rows);
  std::cout << '\n';
  for (const Json& problem : out["problems"]) {
    std::cout << text_of(problem["message"]) << '\n';
  }
  if (out["problems"].empty()) std::cout << "nothing is missing\n";
}

}  // namespace

Command add_inspect(CLI::App& app, const Environment&) {
  auto options = std::make_shared<Options>();
  app.add_option(
         "path", options->path,
         "Checkpoint (a safetensors file, model.safetensors.index.json, or a directory with either) or trace")
      ->required();
  add_json_flag(app, &options->json);
  app.footer("Exit codes: 0 nothing is missing; 1 tensors are missing or odd, each is named; 2 a bad file.");
  return [options] {
    const Json out = inspect_path(options->path);
    options->json ? print_json(out) : print_text(out);
    return out["problems"].empty() ? kExitOk : kExitNo;
  };
}

}  // namespace fmhc::cli
