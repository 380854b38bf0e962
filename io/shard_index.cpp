#include "io/shard_index.h"

#include <algorithm>

#include "io/json_sax.h"

namespace fmhc::io {
namespace {

// Stays inside its directory by its text alone; links inside the directory are the owner's business.
bool is_inside(std::string_view path) {
  if (path.empty() || path.find('\\') != std::string_view::npos) return false;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

class IndexSax final : public LimitedSax {
 public:
  IndexSax(std::string file, const Limits& limits, ShardIndex& out)
      : LimitedSax(std::move(file), limits), out_(out) {}

  bool key(string_t& text) override {
    if (!check_name(text)) return false;
    if (depth() == 1) {
      in_map_ = text == "weight_map";
      if (in_map_ && seen_map_) return fail(Errc::kDuplicateKey, text, "one weight map");
      seen_map_ = seen_map_ || in_map_;
    }
    if (depth() == 2 && in_map_) name_ = text;
    return true;
  }

  bool string(string_t& text) override {
    if (!in_map_) return true;
    if (depth() != 2) return wrong_type("a string");
    if (!check_name(text)) return false;
    if (!is_inside(text)) return fail(Errc::kPathEscape, text, "a path inside the directory of the index");
    if (count_++ == limits().tensors) {
      return fail(Errc::kTooManyTensors, std::to_string(count_) + " or more",
                  "at most " + std::to_string(limits().tensors));
    }
    if (out_.size() == limits().shards && !out_.contains(text)) {
      return fail(Errc::kTooManyTensors, "more shards", "at most " + std::to_string(limits().shards));
    }
    out_[text].push_back(name_);
    return true;
  }

  // What stands beside the weight map (sizes, in any notation) is not used.
  bool null() override { return ignored() || wrong_type("null"); }
  bool boolean(bool) override { return ignored() || wrong_type("a boolean"); }
  bool number_integer(number_integer_t) override { return ignored() || wrong_type("a number"); }
  bool number_unsigned(number_unsigned_t) override { return ignored() || wrong_type("a number"); }
  bool number_float(number_float_t, const string_t&) override { return ignored() || wrong_type("a number"); }

  bool seen_map() const { return seen_map_; }

 private:
  bool ignored() const { return depth() >= 1 && !in_map_; }
  bool on_enter(bool is_object) override {
    return depth() == 1 || ignored() || (depth() == 2 && is_object) ||
           wrong_type(is_object ? "an object" : "an array");
  }
  bool on_leave() override { return true; }
  std::string place() const override { return in_map_ ? "weight_map." + name_ : ""; }
  std::string wanted_here() const override { return depth() <= 1 ? "an object" : "a shard's file name"; }

  ShardIndex& out_;
  std::string name_;
  size_t count_ = 0;
  bool in_map_ = false, seen_map_ = false;
};

Status check_unique(const ShardIndex& index, const std::string& file) {
  std::vector<std::string_view> names;
  for (const auto& [shard, tensors] : index) names.insert(names.end(), tensors.begin(), tensors.end());
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin == names.end()) return ok_status();
  return Fault{Errc::kDuplicateKey, file, "weight_map." + std::string(*twin), "twice",
               "one shard for each tensor"};
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& file, const Limits& limits) {
  try {
    ShardIndex index;
    IndexSax sax(file, limits, index);
    if (Status parsed = sax.parse(text); !parsed) return parsed.fault();
    if (!sax.seen_map()) return Fault{Errc::kMissingField, file, "weight_map", "", "an object of this name"};
    if (Status unique = check_unique(index, file); !unique) return unique.fault();
    return index;
  } catch (const std::bad_alloc&) {
    return Fault{Errc::kOutOfMemory, file, "index", std::to_string(text.size()) + " bytes", "memory for it"};
  }
}

}  // namespace fmhc::io
