#include "io/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "io/shard_index.h"

namespace fmhc::io {
namespace {

constexpr std::array<const char*, 3> kKindNames = {"attn", "ffn", "head"};
constexpr std::array<const char*, kHcParts> kPartNames = {"fn", "base", "scale"};
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kFileName = "model.safetensors";

std::string leaf_name(HcKind kind, HcPart part, bool flat) {
  const std::string kind_name = kKindNames[static_cast<size_t>(kind)], part_name = kPartNames[part];
  if (flat) return "hc_" + kind_name + "_" + part_name;
  return kind == HcKind::kHead ? "hc_head.hc_" + part_name : kind_name + "_hc." + part_name;
}

// Splits "PREFIX" + "layers.12." (or "mtp.0.") off the name's front; false when a number is no number.
bool split_block(std::string_view front, HcSite& site) {
  site.prefix = front;
  for (const std::string_view block : {"layers", "mtp"}) {
    const size_t at = front.rfind(std::string(block) + ".");
    if (at == std::string_view::npos || (at != 0 && front[at - 1] != '.')) continue;
    const std::string_view digits = front.substr(at + block.size() + 1);
    if (digits.size() < 2 || digits.back() != '.') return false;
    const char* end = digits.data() + digits.size() - 1;
    const auto [stop, error] = std::from_chars(digits.data(), end, site.index);
    if (error != std::errc{} || stop != end || site.index < 0) return false;
    site.prefix = front.substr(0, at);
    site.block = block;
    return true;
  }
  return true;
}

struct Sizes {
  int64_t streams = 0, hidden = 0;
};

// Streams and hidden size that fn [n(n+2), n*H] (or [n, n*H] of a head) stands for.
std::optional<Sizes> sizes_of(const HcSite& site) {
  const auto& fn = site.parts[kFn];
  if (!fn || fn->info.shape.size() != 2) return std::nullopt;
  constexpr int64_t kMostStreams = 8;
  for (int64_t n = 1; n <= kMostStreams; ++n) {
    const int64_t rows = site.kind == HcKind::kHead ? n : n * (n + 2);
    const int64_t columns = fn->info.shape[1];
    if (fn->info.shape[0] == rows && columns > 0 && columns % n == 0) return Sizes{n, columns / n};
  }
  return std::nullopt;
}

Shape wanted_shape(const HcSite& site, HcPart part, int64_t streams, int64_t hidden) {
  const bool head = site.kind == HcKind::kHead;
  const int64_t rows = head ? streams : streams * (streams + 2);
  if (part == kFn) return {rows, streams * hidden};
  return {part == kBase ? rows : head ? 1 : 3};
}

}  // namespace

const char* hc_kind_name(HcKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}
const char* hc_part_name(HcPart part) {
  return kPartNames[part];
}

std::string HcSite::label() const {
  std::string text = prefix == "model." ? "" : prefix;
  if (!block.empty()) text += block + "." + std::to_string(index) + ".";
  return text + hc_kind_name(kind);
}

std::string HcSite::tensor_name(HcPart part) const {
  std::string name = prefix;
  if (!block.empty()) name += block + "." + std::to_string(index) + ".";
  return name + leaf_name(kind, part, flat_names);
}

Checkpoint::Order Checkpoint::order_of(const HcSite& site) {
  const int group = site.block == "layers" ? 0 : site.block.empty() ? 1 : 2;
  return {group, site.prefix, site.index, site.kind};
}

std::optional<HcName> parse_hc_name(const std::string& name) {
  if (name.find("hc_") == std::string::npos && name.find("_hc.") == std::string::npos) return std::nullopt;
  for (const HcKind kind : {HcKind::kAttn, HcKind::kFfn, HcKind::kHead}) {
    for (const HcPart part : {kFn, kBase, kScale}) {
      for (const bool flat : {false, true}) {
        const std::string leaf = leaf_name(kind, part, flat);
        if (!name.ends_with(leaf)) continue;
        const std::string_view front = std::string_view(name).substr(0, name.size() - leaf.size());
        if (!front.empty() && front.back() != '.') continue;
        HcName found{{}, part};
        found.site.kind = kind;
        found.site.flat_names = flat;
        if (!split_block(front, found.site)) return std::nullopt;
        const bool in_block = !found.site.block.empty();
        if (!in_block && kind != HcKind::kHead) return std::nullopt;
        return found;
      }
    }
  }
  return std::nullopt;
}

Result<std::string> Checkpoint::resolve(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  for (const char* name : {kIndexName, kFileName}) {
    const auto candidate = std::filesystem::path(path) / name;
    if (std::filesystem::exists(candidate, error)) return candidate.string();
  }
  return Fault{Errc::kNotAFile, path, "", "a directory without a checkpoint",
               std::string(kIndexName) + " or " + kFileName + " in it"};
}

Result<Checkpoint> Checkpoint::open(const std::string& path, const Limits& limits) {
  const auto resolved = resolve(path);
  if (!resolved) return resolved.fault();
  Checkpoint checkpoint;
  checkpoint.limits_ = limits;
  const bool is_index = resolved->ends_with(".json");
  Status added = is_index ? checkpoint.add_index(*resolved) : checkpoint.add_file(*resolved, nullptr);
  if (!added) return added.fault();
  for (auto& [order, site] : checkpoint.found_) checkpoint.sites_.push_back(std::move(site));
  checkpoint.found_.clear();
  checkpoint.find_problems(*resolved);
  return checkpoint;
}

Status Checkpoint::add_index(const std::string& path) {
  const auto file = RegularFile::open(path);
  if (!file) return file.fault();
  if (file->size() > limits_.header_bytes) {
    return Fault{Errc::kHeaderTooLong, path, "", std::to_string(file->size()) + " bytes",
                 "at most " + std::to_string(limits_.header_bytes)};
  }
  Buffer text(file->size());
  if (!text.allocated()) {
    return Fault{Errc::kOutOfMemory, path, "", std::to_string(file->size()) + " bytes", "memory for it"};
  }
  if (Status read = file->read(0, text.bytes()); !read) return read;
  const auto index =
      parse_shard_index({reinterpret_cast<const char*>(text.data()), text.size()}, path, limits_);
  if (!index) return index.fault();
  const auto directory = std::filesystem::path(path).parent_path();
  for (const auto& [shard, names] : *index) {
    if (Status added = add_file((directory / shard).string(), &names); !added) return added;
  }
  return ok_status();
}

// listed: the tensors that the index promises in this file; null takes all.
Status Checkpoint::add_file(const std::string& path, const std::vector<std::string>* listed) {
  const auto reader = SafetensorsReader::open(path, limits_);
  if (!reader) return reader.fault();
  const auto shard = static_cast<uint32_t>(shards_.size());
  if (shards_.empty()) metadata_ = reader->metadata();
  shards_.push_back(path);
  if (!listed) {
    for (const TensorInfo& tensor : reader->tensors()) add_tensor(tensor, shard);
    return ok_status();
  }
  for (const std::string& name : *listed) {
    const TensorInfo* tensor = reader->find(name);
    if (!tensor)
      return Fault{Errc::kMissingTensor, path, name, "", "the tensor that the index promises here"};
    add_tensor(*tensor, shard);
  }
  return ok_status();
}

void Checkpoint::add_tensor(const TensorInfo& info, uint32_t shard) {
  ++tensor_count_;
  auto named = parse_hc_name(info.name);
  if (!named) return;
  const auto key = order_of(named->site);
  HcSite& site = found_.try_emplace(order_of(named->site), named->site).first->second;
  auto& part = site.parts[named->part];
  if (part) {
    problems_.push_back(
        {Errc::kDuplicateKey, shards_[shard], info.name, "a second " + site.label(), part->info.name});
    return;
  }
  part = HcTensor{info, shard};
}

void Checkpoint::find_problems(const std::string& path) {
  if (sites_.empty()) {
    problems_.push_back({Errc::kMissingTensor, path, "", "no hyper-connection tensors",
                         "layers.N.attn_hc.fn or layers.N.hc_attn_fn"});
    return;
  }
  for (const HcSite& site : sites_) {
    const auto sizes = sizes_of(site);
    if (!sizes || site.kind == HcKind::kHead) continue;
    streams_ = sizes->streams;
    hidden_ = sizes->hidden;
    break;
  }
  for (const HcSite& site : sites_) check_site(site);
  check_layers(path);
}

void Checkpoint::check_site(const HcSite& site) {
  for (const HcPart part : {kFn, kBase, kScale}) {
    const auto& tensor = site.parts[part];
    const Shape wanted = streams_ ? wanted_shape(site, part, streams_, hidden_) : Shape{};
    const std::string wanted_text =
        streams_ ? "F32 " + shape_text(wanted) : "F32 of fn [n(n+2), n*H], base [n(n+2)], scale [3]";
    if (!tensor) {
      problems_.push_back({Errc::kMissingTensor, "", site.tensor_name(part), "", wanted_text});
      continue;
    }
    const std::string& file = shards_[tensor->shard];
    if (tensor->info.dtype != Dtype::kF32) {
      problems_.push_back(
          {Errc::kWrongDtype, file, tensor->info.name, dtype_name(tensor->info.dtype), "F32"});
    }
    if (!streams_ || tensor->info.shape != wanted) {
      problems_.push_back(
          {Errc::kWrongShape, file, tensor->info.name, shape_text(tensor->info.shape), wanted_text});
    }
  }
}

// Every layer and mtp block from 0 to the highest has both sites.
void Checkpoint::check_layers(const std::string& path) {
  constexpr int64_t kMostReported = 100;  // a hostile layer number must not make a list of that length
  std::map<std::pair<std::string, std::string>, std::map<int64_t, unsigned>> blocks;
  for (const HcSite& site : sites_) {
    if (site.kind != HcKind::kHead)
      blocks[{site.prefix, site.block}][site.index] |= 1U << static_cast<unsigned>(site.kind);
  }
  for (const auto& [block, layers] : blocks) {
    const std::string front = block.first + block.second + ".";
    int64_t next = 0, reported = 0;
    const auto report = [&](int64_t index, const std::string& what) {
      if (reported++ < kMostReported) {
        problems_.push_back(
            {Errc::kMissingTensor, path, front + std::to_string(index), what, "an attn and an ffn site"});
      }
    };
    for (const auto& [index, kinds] : layers) {
      for (; next < index && reported < kMostReported; ++next) report(next, "no site");
      next = index + 1;
      if (kinds != 3U) report(index, kinds == 1U ? "no ffn site" : "no attn site");
    }
  }
}

Result<SafetensorsReader> Checkpoint::open_shard(uint32_t shard) const {
  return SafetensorsReader::open(shards_[shard], limits_);
}

}  // namespace fmhc::io
