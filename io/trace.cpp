#include "io/trace.h"

#include <array>

namespace fmhc::io {
namespace {

enum class Dims : uint8_t {
  kHidden,
  kTokensHidden,
  kStreams,
  kMixes,
  kThree,
  kOne,
  kFn,
  kHeadFn,
  kMixPerToken,
  kCombPerToken,
  kResidual
};
enum class Kind : uint8_t { kF32, kStorage };
enum class When : uint8_t { kAlways, kCarried, kHeadWeights, kNoHeadWeights };

template <class Record>
struct Row {
  HostTensor Record::*member;
  const char* name;  // {L} layer, {S} site, {N} the site's norm, {A} what follows the site
  Dims dims;
  Kind kind;
  When when;
};

constexpr std::array<Row<SiteRecord>, 12> kSiteRows = {{
    {&SiteRecord::fn, "model.layers.{L}.{S}_hc.fn", Dims::kFn, Kind::kF32, When::kAlways},
    {&SiteRecord::scale, "model.layers.{L}.{S}_hc.scale", Dims::kThree, Kind::kF32, When::kAlways},
    {&SiteRecord::base, "model.layers.{L}.{S}_hc.base", Dims::kMixes, Kind::kF32, When::kAlways},
    {&SiteRecord::norm_weight, "model.layers.{L}.{N}.weight", Dims::kHidden, Kind::kStorage, When::kAlways},
    {&SiteRecord::residual, "trace.layers.{L}.{S}.residual", Dims::kResidual, Kind::kStorage, When::kAlways},
    {&SiteRecord::post_mix, "trace.layers.{L}.{S}.post_mix", Dims::kMixPerToken, Kind::kF32, When::kAlways},
    {&SiteRecord::comb_mix, "trace.layers.{L}.{S}.comb_mix", Dims::kCombPerToken, Kind::kF32, When::kAlways},
    {&SiteRecord::layer_input, "trace.layers.{L}.{S}.layer_input", Dims::kTokensHidden, Kind::kStorage,
     When::kAlways},
    {&SiteRecord::sublayer_output, "trace.layers.{L}.{S}.sublayer_output", Dims::kTokensHidden,
     Kind::kStorage, When::kAlways},
    {&SiteRecord::residual_out, "trace.layers.{L}.{A}", Dims::kResidual, Kind::kStorage, When::kAlways},
    {&SiteRecord::pre_mix, "trace.layers.{L}.{S}.pre_mix", Dims::kMixPerToken, Kind::kF32, When::kCarried},
    {&SiteRecord::normed_input, "trace.layers.{L}.{S}.normed_input", Dims::kTokensHidden, Kind::kStorage,
     When::kCarried},
}};

constexpr std::array<Row<HeadRecord>, 6> kHeadRows = {{
    {&HeadRecord::fn, "model.hc_head.hc_fn", Dims::kHeadFn, Kind::kF32, When::kHeadWeights},
    {&HeadRecord::scale, "model.hc_head.hc_scale", Dims::kOne, Kind::kF32, When::kHeadWeights},
    {&HeadRecord::base, "model.hc_head.hc_base", Dims::kStreams, Kind::kF32, When::kHeadWeights},
    {&HeadRecord::norm_weight, "model.norm.weight", Dims::kHidden, Kind::kStorage, When::kNoHeadWeights},
    {&HeadRecord::residual, "trace.head.residual", Dims::kResidual, Kind::kStorage, When::kAlways},
    {&HeadRecord::output, "trace.head.output", Dims::kTokensHidden, Kind::kStorage, When::kAlways},
}};

struct SiteWords {
  const char *name, *norm, *after;
};
constexpr std::array<SiteWords, 2> kSiteWords = {
    {{"attn", "input_layernorm", "ffn.residual"}, {"ffn", "post_attention_layernorm", "residual_out"}}};

std::string expand_name(std::string_view pattern, int64_t layer, Site site) {
  const SiteWords& words = kSiteWords[static_cast<size_t>(site)];
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '{') {
      name += pattern[i];
      continue;
    }
    const char letter = pattern[i + 1];
    name += letter == 'L'   ? std::to_string(layer)
            : letter == 'S' ? words.name
            : letter == 'N' ? words.norm
                            : words.after;
    i += 2;
  }
  return name;
}

Shape shape_of(Dims dims, const TraceConstants& c) {
  switch (dims) {
    case Dims::kHidden:
      return {c.hidden};
    case Dims::kTokensHidden:
      return {1, c.tokens, c.hidden};
    case Dims::kStreams:
      return {c.streams};
    case Dims::kMixes:
      return {c.mixes()};
    case Dims::kThree:
      return {3};
    case Dims::kOne:
      return {1};
    case Dims::kFn:
      return {c.mixes(), c.streams * c.hidden};
    case Dims::kHeadFn:
      return {c.streams, c.streams * c.hidden};
    case Dims::kMixPerToken:
      return {1, c.tokens, c.streams};
    case Dims::kCombPerToken:
      return {1, c.tokens, c.streams, c.streams};
    case Dims::kResidual:
      return {1, c.tokens, c.streams, c.hidden};
  }
  return {};
}

bool is_present(When when, const TraceConstants& c) {
  switch (when) {
    case When::kAlways:
      return true;
    case When::kCarried:
      return c.carried_pre();
    case When::kHeadWeights:
      return c.has_head_weights();
    case When::kNoHeadWeights:
      return !c.has_head_weights();
  }
  return false;
}

template <class Record>
TensorSpec spec_of(const Row<Record>& row, std::string name, const TraceConstants& c) {
  return {std::move(name), row.kind == Kind::kF32 ? Dtype::kF32 : c.dtype, shape_of(row.dims, c)};
}

// Calls visit(spec) for every tensor of a trace until it returns false.
template <class Visit>
bool visit_tensors(const TraceConstants& c, const Visit& visit) {
  if (!visit({kEmbeddingName, c.dtype, shape_of(Dims::kTokensHidden, c)})) return false;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    for (const Site site : kSites) {
      for (const auto& row : kSiteRows) {
        // Between the sites of a layer, one tensor is the output of the first and the input of the second.
        const bool twice = row.member == &SiteRecord::residual_out && site == Site::kAttn;
        if (twice || !is_present(row.when, c)) continue;
        if (!visit(spec_of(row, expand_name(row.name, layer, site), c))) return false;
      }
    }
  }
  for (const auto& row : kHeadRows) {
    if (is_present(row.when, c) && !visit(spec_of(row, row.name, c))) return false;
  }
  return true;
}

Status check_tensor(const SafetensorsReader& reader, const TensorSpec& wanted) {
  const auto fault = [&](Errc code, std::string given, std::string want) {
    return Fault{code, reader.path(), wanted.name, std::move(given), std::move(want)};
  };
  const TensorInfo* given = reader.find(wanted.name);
  if (!given) {
    return fault(Errc::kMissingTensor, "",
                 std::string(dtype_name(wanted.dtype)) + " " + shape_text(wanted.shape));
  }
  if (given->dtype != wanted.dtype) {
    return fault(Errc::kWrongDtype, dtype_name(given->dtype), dtype_name(wanted.dtype));
  }
  if (given->shape != wanted.shape) {
    return fault(Errc::kWrongShape, shape_text(given->shape), shape_text(wanted.shape));
  }
  return ok_status();
}

// Loads every present row's tensor into its member.
template <class Record, size_t kRows, class Name>
Result<Record> load_rows(const SafetensorsReader& reader, const std::array<Row<Record>, kRows>& rows,
                         const TraceConstants& constants, const Name& name) {
  Record record;
  for (const auto& row : rows) {
    if (!is_present(row.when, constants)) continue;
    auto tensor = reader.read(name(row));
    if (!tensor) return tensor.fault();
    record.*row.member = std::move(*tensor);
  }
  return record;
}

}  // namespace

const char* site_name(Site site) {
  return kSiteWords[static_cast<size_t>(site)].name;
}

std::string site_tensor_name(HostTensor SiteRecord::*member, int64_t layer, Site site) {
  for (const auto& row : kSiteRows) {
    if (row.member == member) return expand_name(row.name, layer, site);
  }
  return {};
}

std::string head_tensor_name(HostTensor HeadRecord::*member) {
  for (const auto& row : kHeadRows) {
    if (row.member == member) return row.name;
  }
  return {};
}

std::vector<TensorSpec> trace_tensors(const TraceConstants& constants) {
  std::vector<TensorSpec> specs;
  visit_tensors(constants, [&](TensorSpec spec) {
    specs.push_back(std::move(spec));
    return true;
  });
  return specs;
}

std::vector<Fault> trace_problems(const SafetensorsReader& reader, const TraceConstants& constants,
                                  size_t most) {
  std::vector<Fault> problems;
  visit_tensors(constants, [&](const TensorSpec& wanted) {
    if (Status checked = check_tensor(reader, wanted); !checked) problems.push_back(checked.fault());
    return problems.size() < most;
  });
  return problems;
}

Result<Trace> Trace::open(const std::string& path, const Limits& limits) {
  auto reader = SafetensorsReader::open(path, limits);
  if (!reader) return reader.fault();
  const auto constants = read_trace_constants(reader->metadata(), path);
  if (!constants) return constants.fault();
  const auto problems = trace_problems(*reader, *constants, 1);
  if (!problems.empty()) return problems.front();
  return Trace(std::move(*reader), *constants);
}

Result<HostTensor> Trace::load(HostTensor SiteRecord::*member, int64_t layer, Site site) const {
  return reader_.read(site_tensor_name(member, layer, site));
}

Result<SiteRecord> Trace::load_site(int64_t layer, Site site) const {
  return load_rows(reader_, kSiteRows, constants_,
                   [&](const Row<SiteRecord>& row) { return expand_name(row.name, layer, site); });
}

Result<HeadRecord> Trace::load_head() const {
  return load_rows(reader_, kHeadRows, constants_,
                   [](const Row<HeadRecord>& row) { return std::string_view(row.name); });
}

}  // namespace fmhc::io
