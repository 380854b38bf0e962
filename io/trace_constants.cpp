// The constants of a trace, from its metadata and back. Every entry is needed and none has a default.
#include <array>
#include <charconv>
#include <utility>

#include "io/trace.h"

namespace fmhc::io {
namespace {

constexpr std::array<const char*, 3> kModelNames = {"deepseek_v4", "deepseek_v41", "glm5_next"};
constexpr std::array<std::pair<const char*, Dtype>, 3> kStorageNames = {
    {{"float32", Dtype::kF32}, {"bfloat16", Dtype::kBF16}, {"float16", Dtype::kF16}}};

class MetadataView {
 public:
  MetadataView(const Metadata& metadata, const std::string& file) : metadata_(metadata), file_(file) {}

  // The entry, or null after noting that it is missing.
  const std::string* get(const char* key) {
    const auto found = metadata_.find(key);
    if (found != metadata_.end()) return &found->second;
    note(Errc::kMissingMetadata, key, "", "this entry");
    return nullptr;
  }

  template <class Number>
  void number(const char* key, Number least, Number most, Number& out) {
    const std::string* text = get(key);
    if (!text) return;
    Number value{};
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, value);
    // Written so that a NaN fails.
    if (error == std::errc{} && stop == end && value >= least && value <= most) {
      out = value;
      return;
    }
    note(Errc::kBadMetadata, key, *text, "a number from " + number_text(least) + " to " + number_text(most));
  }

  template <class Table, class Value>
  void choice(const char* key, const Table& table, Value& out) {
    const std::string* text = get(key);
    if (!text) return;
    std::string names;
    for (const auto& [name, value] : table) {
      if (*text == name) {
        out = value;
        return;
      }
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    note(Errc::kBadMetadata, key, *text, names);
  }

  void note(Errc code, const char* key, std::string given, std::string wanted) {
    if (ok_) fault_ = {code, file_, std::string("metadata ") + key, std::move(given), std::move(wanted)};
    ok_ = false;
  }
  bool ok() const { return ok_; }
  const Fault& fault() const { return fault_; }

 private:
  template <class Number>
  static std::string number_text(Number value) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
  }

  const Metadata& metadata_;
  const std::string& file_;
  bool ok_ = true;
  Fault fault_{};
};

}  // namespace

const char* model_type_name(ModelType model) {
  return kModelNames[static_cast<size_t>(model)];
}

Metadata trace_metadata(const TraceConstants& c) {
  const auto real = [](float value) {
    char text[64];
    return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
  };
  std::string storage;
  for (const auto& [name, dtype] : kStorageNames) {
    if (dtype == c.dtype) storage = name;
  }
  return {{"format", kTraceFormat},
          {"model_type", model_type_name(c.model)},
          {"dtype", storage},
          {"hidden_size", std::to_string(c.hidden)},
          {"num_hidden_layers", std::to_string(c.layers)},
          {"hc_mult", std::to_string(c.streams)},
          {"tokens", std::to_string(c.tokens)},
          {"hc_sinkhorn_iters", std::to_string(c.sinkhorn_iters)},
          {"hc_eps", real(c.hc_eps)},
          {"hc_post_mult", real(c.post_mult)},
          {"rms_norm_eps", real(c.rms_norm_eps)}};
}

bool is_trace(const Metadata& metadata) {
  const auto format = metadata.find("format");
  return format != metadata.end() && format->second.rfind("flashmhc-trace", 0) == 0;
}

Result<TraceConstants> read_trace_constants(const Metadata& metadata, const std::string& file) {
  constexpr std::array<std::pair<const char*, ModelType>, 3> kModels = {
      {{kModelNames[0], ModelType::kDeepseekV4},
       {kModelNames[1], ModelType::kDeepseekV41},
       {kModelNames[2], ModelType::kGlm5Next}}};
  constexpr int64_t kMostExtent = int64_t{1} << 31, kMostLayers = 4096, kMostStreams = 8;
  constexpr int32_t kMostIters = 1'000'000;
  constexpr float kMostReal = 1e30F;
  MetadataView view(metadata, file);
  const std::string* format = view.get("format");
  if (format && *format != kTraceFormat) view.note(Errc::kWrongFormat, "format", *format, kTraceFormat);
  TraceConstants c;
  view.choice("model_type", kModels, c.model);
  view.choice("dtype", kStorageNames, c.dtype);
  view.number<int64_t>("hidden_size", 1, kMostExtent, c.hidden);
  view.number<int64_t>("num_hidden_layers", 1, kMostLayers, c.layers);
  view.number<int64_t>("hc_mult", 1, kMostStreams, c.streams);
  view.number<int64_t>("tokens", 0, kMostExtent, c.tokens);
  view.number<int32_t>("hc_sinkhorn_iters", 1, kMostIters, c.sinkhorn_iters);
  view.number<float>("hc_eps", 0, kMostReal, c.hc_eps);
  view.number<float>("hc_post_mult", 0, kMostReal, c.post_mult);
  view.number<float>("rms_norm_eps", 0, kMostReal, c.rms_norm_eps);
  if (!view.ok()) return view.fault();
  return c;
}

}  // namespace fmhc::io
