#include "io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "io/json_sax.h"

namespace fmhc::io {
namespace {

constexpr const char* kMetadataKey = "__metadata__";

enum Field : uint8_t { kDtype, kShape, kOffsets, kFields };
constexpr std::array<const char*, kFields> kFieldNames = {"dtype", "shape", "data_offsets"};
constexpr std::array<const char*, kFields> kFieldTypes = {"a string", "an array of unsigned integers",
                                                          "an array of two unsigned integers"};

class HeaderSax final : public LimitedSax {
 public:
  HeaderSax(std::string file, const Limits& limits, SafetensorsHeader& out)
      : LimitedSax(std::move(file), limits), out_(out) {}

  bool key(string_t& text) override {
    if (!check_name(text)) return false;
    if (depth() == 1) return outer_key(text);
    return in_metadata_ ? metadata_key(text) : tensor_key(text);
  }

  bool string(string_t& text) override {
    if (depth() == 2 && in_metadata_) {
      const bool fresh = out_.metadata.emplace(entry_, text).second;
      return fresh || fail(Errc::kDuplicateKey, entry_, "one metadata entry of this name");
    }
    if (depth() != 2 || field_ != kDtype) return wrong_type("a string");
    const auto dtype = dtype_from_name(text);
    if (!dtype) return fail(Errc::kUnknownDtype, text, "a dtype of the format, in upper case");
    tensor_.dtype = *dtype;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth() != 3) return wrong_type("a number");
    if (field_ == kOffsets) {
      if (offsets_ == 2) return fail(Errc::kBadOffsets, "more than two numbers", kFieldTypes[kOffsets]);
      (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
      return true;
    }
    if (tensor_.shape.size() == limits().rank) {
      return fail(Errc::kRankTooHigh, "rank " + std::to_string(limits().rank + 1) + " or more",
                  "at most " + std::to_string(limits().rank));
    }
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return fail(Errc::kShapeOverflow, std::to_string(value), "an extent below 2^63");
    }
    tensor_.shape.push_back(static_cast<int64_t>(value));
    return true;
  }

 private:
  bool outer_key(const std::string& text) {
    in_metadata_ = text == kMetadataKey;
    tensor_ = {};
    tensor_.name = text;
    seen_ = {};
    offsets_ = 0;
    if (in_metadata_) {
      if (metadata_seen_) return fail(Errc::kDuplicateKey, text, "one metadata object");
      metadata_seen_ = true;
    } else if (out_.tensors.size() == limits().tensors) {
      return fail(Errc::kTooManyTensors, std::to_string(limits().tensors + 1) + " or more",
                  "at most " + std::to_string(limits().tensors));
    }
    return true;
  }

  bool metadata_key(const std::string& text) {
    entry_ = text;
    return true;
  }

  bool tensor_key(const std::string& text) {
    const auto* found = std::find(kFieldNames.begin(), kFieldNames.end(), text);
    if (found == kFieldNames.end()) return fail(Errc::kUnknownKey, text, "dtype, shape or data_offsets");
    field_ = static_cast<Field>(found - kFieldNames.begin());
    if (seen_[field_]) return fail(Errc::kDuplicateKey, text, "one field of this name");
    seen_[field_] = true;
    return true;
  }

  bool on_enter(bool is_object) override {
    if (depth() <= 2) return is_object || wrong_type("an array");
    if (is_object) return wrong_type("an object");
    return (depth() == 3 && !in_metadata_ && field_ != kDtype) || wrong_type("an array");
  }

  bool on_leave() override {
    if (depth() == 3 && field_ == kOffsets && offsets_ != 2) {
      return fail(Errc::kBadOffsets, std::to_string(offsets_) + " numbers", kFieldTypes[kOffsets]);
    }
    if (depth() != 2 || in_metadata_) return true;
    for (size_t field = 0; field < kFields; ++field) {
      if (!seen_[field])
        return fail(Errc::kMissingField, std::string("no ") + kFieldNames[field], "all three");
    }
    out_.tensors.push_back(std::move(tensor_));
    return true;
  }

  std::string place() const override {
    if (in_metadata_) return std::string(kMetadataKey) + (entry_.empty() ? "" : "." + entry_);
    return tensor_.name;
  }

  std::string wanted_here() const override {
    if (depth() <= 1) return "an object for each tensor";
    return in_metadata_ ? "a string" : kFieldTypes[field_];
  }

  SafetensorsHeader& out_;
  TensorInfo tensor_;
  std::string entry_;
  std::array<bool, kFields> seen_{};
  Field field_ = kDtype;
  int offsets_ = 0;
  bool in_metadata_ = false, metadata_seen_ = false;
};

Status check_tensor(const TensorInfo& tensor, uint64_t data_bytes, const std::string& file) {
  const auto fault = [&](Errc code, std::string given, std::string wanted) {
    return Fault{code, file, tensor.name, std::move(given), std::move(wanted)};
  };
  const std::string kind = std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape);
  const auto bits = tensor_bits(tensor.dtype, tensor.shape);
  if (!bits) return fault(Errc::kShapeOverflow, kind, "a size below 2^63 bits");
  if (*bits % 8 != 0) return fault(Errc::kSubByte, kind, "elements that fill whole bytes");
  const std::string span = std::to_string(tensor.begin) + " to " + std::to_string(tensor.end);
  if (tensor.begin > tensor.end) return fault(Errc::kBadOffsets, span, "begin not above end");
  if (tensor.bytes() != *bits / 8) {
    return fault(Errc::kSpanMismatch, span, std::to_string(*bits / 8) + " bytes for " + kind);
  }
  if (tensor.end > data_bytes) {
    return fault(Errc::kPastEnd, span, "an end within " + std::to_string(data_bytes) + " data bytes");
  }
  return ok_status();
}

Status check_tiling(const std::vector<TensorInfo>& tensors, uint64_t data_bytes, const std::string& file) {
  uint64_t reached = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin != reached) {
      return Fault{tensor.begin > reached ? Errc::kGap : Errc::kOverlap, file, tensor.name,
                   "begin " + std::to_string(tensor.begin), "begin " + std::to_string(reached)};
    }
    reached = tensor.end;
  }
  if (reached != data_bytes) {
    return Fault{Errc::kTail, file, "",
                 std::to_string(data_bytes - reached) + " bytes behind the last tensor",
                 "data that ends at " + std::to_string(reached)};
  }
  return ok_status();
}

// Sorts the name index; equal names are then neighbours, with no hash table for a file to attack.
Status index_names(SafetensorsHeader& header, const std::string& file) {
  const auto name = [&](uint32_t i) -> const std::string& { return header.tensors[i].name; };
  header.by_name.resize(header.tensors.size());
  std::iota(header.by_name.begin(), header.by_name.end(), 0U);
  std::sort(header.by_name.begin(), header.by_name.end(),
            [&](uint32_t a, uint32_t b) { return name(a) < name(b); });
  const auto twin = std::adjacent_find(header.by_name.begin(), header.by_name.end(),
                                       [&](uint32_t a, uint32_t b) { return name(a) == name(b); });
  if (twin == header.by_name.end()) return ok_status();
  return Fault{Errc::kDuplicateKey, file, name(*twin), "twice", "one tensor of this name"};
}

Status validate(SafetensorsHeader& header, uint64_t data_bytes, const std::string& file) {
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  if (Status named = index_names(header, file); !named) return named;
  for (const TensorInfo& tensor : header.tensors) {
    if (Status checked = check_tensor(tensor, data_bytes, file); !checked) return checked;
  }
  return check_tiling(header.tensors, data_bytes, file);
}

}  // namespace

const TensorInfo* SafetensorsHeader::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name.begin(), by_name.end(), name,
                       [&](uint32_t i, std::string_view key) { return tensors[i].name < key; });
  return found != by_name.end() && tensors[*found].name == name ? &tensors[*found] : nullptr;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                                   const std::string& file, const Limits& limits) {
  try {
    SafetensorsHeader header;
    HeaderSax sax(file, limits, header);
    if (Status parsed = sax.parse(text); !parsed) return parsed.fault();
    if (Status valid = validate(header, data_bytes, file); !valid) return valid.fault();
    return header;
  } catch (const std::bad_alloc&) {
    return Fault{Errc::kOutOfMemory, file, "header", std::to_string(text.size()) + " bytes", "memory for it"};
  }
}

}  // namespace fmhc::io
