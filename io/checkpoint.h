// The hyper-connection tensors of a model checkpoint: one safetensors file, a sharded index
// (model.safetensors.index.json), or a directory that holds either. Both naming schemes are read,
// layers.N.attn_hc.fn and layers.N.hc_attn_fn, with any prefix, for layers, mtp blocks and heads.
// Only headers are read here; a file that breaks a rule of its format is an error, but a checkpoint that
// lacks tensors or has odd ones opens, and says so in problems().
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "io/safetensors_reader.h"

namespace fmhc::io {

enum class HcKind : uint8_t { kAttn, kFfn, kHead };
enum HcPart : uint8_t { kFn, kBase, kScale, kHcParts };
const char* hc_kind_name(HcKind kind);
const char* hc_part_name(HcPart part);

struct HcTensor {
  TensorInfo info;
  uint32_t shard = 0;  // index into Checkpoint::shards()
};

struct HcSite {
  std::string prefix;  // "" or "model." in released checkpoints
  std::string block;   // "layers", "mtp", or "" for the head of the trunk
  int64_t index = -1;  // of the layer or mtp block
  HcKind kind = HcKind::kAttn;
  bool flat_names = false;  // hc_attn_fn, against attn_hc.fn
  std::array<std::optional<HcTensor>, kHcParts> parts;

  std::string label() const;  // "layers.3.attn", "head"
  std::string tensor_name(HcPart part) const;
};

// The site and part that a tensor name stands for; nothing if it is not a hyper-connection weight.
struct HcName {
  HcSite site;
  HcPart part;
};
std::optional<HcName> parse_hc_name(const std::string& name);

class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::string& path, const Limits& limits = {});

  const std::vector<std::string>& shards() const { return shards_; }  // paths
  const std::vector<HcSite>& sites() const { return sites_; }         // layers, head, mtp; in running order
  const Metadata& metadata() const { return metadata_; }              // of the first shard
  size_t tensor_count() const { return tensor_count_; }
  // From the first site that is complete and well formed; 0 if there is none.
  int64_t streams() const { return streams_; }
  int64_t hidden() const { return hidden_; }
  const std::vector<Fault>& problems() const { return problems_; }

  Result<SafetensorsReader> open_shard(uint32_t shard) const;

 private:
  // Running order: the trunk's layers, its head, then the mtp blocks.
  using Order = std::tuple<int, std::string, int64_t, HcKind>;
  static Order order_of(const HcSite& site);

  Checkpoint() = default;
  static Result<std::string> resolve(const std::string& path);
  Status add_file(const std::string& path, const std::vector<std::string>* listed);
  Status add_index(const std::string& path);
  void add_tensor(const TensorInfo& info, uint32_t shard);
  void find_problems(const std::string& path);
  void check_site(const HcSite& site);
  void check_layers(const std::string& path);

  Limits limits_;
  std::vector<std::string> shards_;
  std::map<Order, HcSite> found_;  // while the files are read
  std::vector<HcSite> sites_;
  std::vector<Fault> problems_;
  Metadata metadata_;
  size_t tensor_count_ = 0;
  int64_t streams_ = 0, hidden_ = 0;
};

}  // namespace fmhc::io
