// Typed view of a recorded trace (format flashmhc-trace-1, tests/data/README.md): constants come from its
// metadata alone, and every tensor that a trace of its model type has is checked for name, dtype and shape
// when it is opened. Tensors are loaded one site at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/safetensors_reader.h"
#include "io/safetensors_writer.h"

namespace fmhc::io {

inline constexpr const char* kTraceFormat = "flashmhc-trace-1";

enum class ModelType : uint8_t { kDeepseekV4, kDeepseekV41, kGlm5Next };
const char* model_type_name(ModelType model);  // as the metadata spells it

enum class Site : uint8_t { kAttn, kFfn };
inline constexpr Site kSites[] = {Site::kAttn, Site::kFfn};
const char* site_name(Site site);  // "attn", "ffn"

struct TraceConstants {
  ModelType model = ModelType::kDeepseekV4;
  Dtype dtype = Dtype::kF32;  // of the residual and of what is computed from it: F32, BF16 or F16
  int64_t hidden = 0, layers = 0, streams = 0, tokens = 0;
  int32_t sinkhorn_iters = 0;
  float hc_eps = 0, post_mult = 0, rms_norm_eps = 0;

  bool carried_pre() const { return model == ModelType::kDeepseekV41; }
  bool has_head_weights() const { return model == ModelType::kDeepseekV4; }
  int64_t mixes() const { return streams * (streams + 2); }  // rows of fn
};

// Batch is 1. n = streams, H = hidden, T = tokens; "storage" is TraceConstants::dtype, the others are
// float32.
struct SiteRecord {
  HostTensor fn;               // [n(n+2), n*H]
  HostTensor scale;            // [3]
  HostTensor base;             // [n(n+2)]
  HostTensor norm_weight;      // [H], storage: of the RMSNorm behind the collapse
  HostTensor residual;         // [1, T, n, H], storage: entering the site
  HostTensor post_mix;         // [1, T, n]
  HostTensor comb_mix;         // [1, T, n, n]: row = source, column = destination
  HostTensor layer_input;      // [1, T, H], storage
  HostTensor sublayer_output;  // [1, T, H], storage
  HostTensor residual_out;     // [1, T, n, H], storage: leaving the site
  HostTensor pre_mix;          // [1, T, n], carried_pre only: what this site predicts for the next
  HostTensor normed_input;     // [1, T, H], storage, carried_pre only
};

struct HeadRecord {
  HostTensor fn, scale, base;  // [n, n*H], [1], [n]; has_head_weights only
  HostTensor norm_weight;      // [H], storage; not in traces with head weights
  HostTensor residual;         // [1, T, n, H], storage
  HostTensor output;           // [1, T, H], storage: before the final norm
};

// Names, dtypes and shapes of a site's tensors, of the head's, and of everything in a trace of these
// constants.
std::string site_tensor_name(HostTensor SiteRecord::*member, int64_t layer, Site site);
std::string head_tensor_name(HostTensor HeadRecord::*member);
inline constexpr const char* kEmbeddingName = "trace.embedding";  // [1, T, H], storage
// Scores of a vocabulary behind the final norm. Some recordings have them; nothing here reads them.
inline constexpr const char* kLogitsName = "trace.logits";  // [1, T, vocabulary]
std::vector<TensorSpec> trace_tensors(const TraceConstants& constants);

// The constants as metadata entries, format included; and back.
Metadata trace_metadata(const TraceConstants& constants);
Result<TraceConstants> read_trace_constants(const Metadata& metadata, const std::string& file);
bool is_trace(const Metadata& metadata);  // claims any version of the trace format

// Tensors that are missing or of another dtype or shape than the constants say; stops at `most` of them.
std::vector<Fault> trace_problems(const SafetensorsReader& reader, const TraceConstants& constants,
                                  size_t most);

class Trace {
 public:
  static Result<Trace> open(const std::string& path, const Limits& limits = {});

  const SafetensorsReader& file() const { return reader_; }
  const TraceConstants& constants() const { return constants_; }

  Result<HostTensor> load_embedding() const { return reader_.read(kEmbeddingName); }
  Result<SiteRecord> load_site(int64_t layer, Site site) const;
  Result<HeadRecord> load_head() const;
  // One tensor of a site, for instance the pre_mix that the site before predicted.
  Result<HostTensor> load(HostTensor SiteRecord::*member, int64_t layer, Site site) const;

 private:
  Trace(SafetensorsReader reader, TraceConstants constants)
      : reader_(std::move(reader)), constants_(constants) {}

  SafetensorsReader reader_;
  TraceConstants constants_;
};

}  // namespace fmhc::io
