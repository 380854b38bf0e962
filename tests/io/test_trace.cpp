// The recorded traces of tests/data through the typed view, and what a trace must not lack.
#include <cmath>
#include <functional>

#include "io/trace.h"
#include "tests/io/files.h"

namespace fmhc::io {
namespace {

using test::TempDir;

std::string data_path(const std::string& name) {
  return FMHC_TEST_DATA "/" + name + ".safetensors";
}

struct Recorded {
  const char* name;
  ModelType model;
  Dtype dtype;
  int64_t layers, tokens;
  float rms_norm_eps;
};

constexpr Recorded kRecorded[] = {
    {"hf_v4_h256_l4_f32", ModelType::kDeepseekV4, Dtype::kF32, 4, 13, 1e-6F},
    {"hf_v4_h256_l4_f32_peaked", ModelType::kDeepseekV4, Dtype::kF32, 4, 13, 1e-6F},
    {"hf_v4_h256_l4_bf16", ModelType::kDeepseekV4, Dtype::kBF16, 4, 13, 1e-6F},
    {"hf_glm5_h256_l4_f32", ModelType::kGlm5Next, Dtype::kF32, 4, 11, 1e-5F},
    {"sglang_v41_h256_l3_bf16", ModelType::kDeepseekV41, Dtype::kBF16, 3, 9, 1e-20F},
};

class RecordedTraces : public testing::TestWithParam<Recorded> {};

TEST_P(RecordedTraces, ConstantsComeFromTheMetadata) {
  const auto trace = Trace::open(data_path(GetParam().name));
  ASSERT_TRUE(trace.ok()) << trace.fault().message();
  const TraceConstants& c = trace->constants();
  EXPECT_EQ(c.model, GetParam().model);
  EXPECT_EQ(c.dtype, GetParam().dtype);
  EXPECT_EQ(c.layers, GetParam().layers);
  EXPECT_EQ(c.tokens, GetParam().tokens);
  EXPECT_EQ(c.rms_norm_eps, GetParam().rms_norm_eps);
  EXPECT_EQ(c.hidden, 256);
  EXPECT_EQ(c.streams, 4);
  EXPECT_EQ(c.sinkhorn_iters, 20);
  EXPECT_EQ(c.hc_eps, 1e-6F);
  EXPECT_EQ(c.post_mult, 2.0F);
}

TEST_P(RecordedTraces, EverySiteLoadsAndTheChainHolds) {
  const auto trace = Trace::open(data_path(GetParam().name));
  ASSERT_TRUE(trace.ok()) << trace.fault().message();
  const auto bytes = [](const HostTensor& tensor) {
    return std::string_view(tensor.as<char>(), tensor.buffer.size());
  };
  HostTensor before;
  int64_t sites = 0;
  for (int64_t layer = 0; layer < trace->constants().layers; ++layer) {
    for (const Site site : kSites) {
      auto record = trace->load_site(layer, site);
      ASSERT_TRUE(record.ok()) << record.fault().message();
      if (sites++ > 0) {
        EXPECT_EQ(bytes(record->residual), bytes(before)) << layer << site_name(site);
      }
      EXPECT_EQ(record->fn.shape, (Shape{24, 1024}));
      EXPECT_EQ(record->pre_mix.buffer.size() > 0, trace->constants().carried_pre());
      EXPECT_EQ(record->normed_input.buffer.size() > 0, trace->constants().carried_pre());
      before = std::move(record->residual_out);
    }
  }
  EXPECT_EQ(sites, 2 * GetParam().layers);
  const auto head = trace->load_head();
  ASSERT_TRUE(head.ok()) << head.fault().message();
  EXPECT_EQ(bytes(head->residual), bytes(before));
  EXPECT_EQ(head->fn.buffer.size() > 0, trace->constants().has_head_weights());
  EXPECT_EQ(head->norm_weight.buffer.size() > 0, !trace->constants().has_head_weights());
  const auto embedding = trace->load_embedding();
  ASSERT_TRUE(embedding.ok()) << embedding.fault().message();
  EXPECT_EQ(embedding->shape, (Shape{1, GetParam().tokens, 256}));
}

// Column sums of a recorded comb_mix are 1, which a wrong offset, row or dtype would not give.
TEST_P(RecordedTraces, CombColumnsSumToOne) {
  const auto trace = Trace::open(data_path(GetParam().name));
  ASSERT_TRUE(trace.ok()) << trace.fault().message();
  const auto comb = trace->load(&SiteRecord::comb_mix, 2, Site::kFfn);
  ASSERT_TRUE(comb.ok()) << comb.fault().message();
  for (int64_t t = 0; t < trace->constants().tokens; ++t) {
    for (int64_t dst = 0; dst < 4; ++dst) {
      float sum = 0;
      for (int64_t src = 0; src < 4; ++src) sum += comb->as<float>()[t * 16 + src * 4 + dst];
      EXPECT_NEAR(sum, 1.0F, 3e-6F) << "token " << t << " column " << dst;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Data, RecordedTraces, testing::ValuesIn(kRecorded),
                         [](const auto& item) { return std::string(item.param.name); });

// A minimal trace with one thing changed.
struct Draft {
  Metadata metadata;
  std::vector<TensorSpec> tensors;

  TensorSpec& find(const std::string& name) {
    for (TensorSpec& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::runtime_error("no " + name);
  }
  void drop(const std::string& name) {
    const auto* given = &find(name);
    tensors.erase(tensors.begin() + (given - tensors.data()));
  }
};

Draft draft_of(ModelType model) {
  TraceConstants c;
  c.model = model;
  c.dtype = Dtype::kBF16;
  c.hidden = 3;
  c.layers = 2;
  c.streams = 2;
  c.tokens = 1;
  c.sinkhorn_iters = 7;
  c.hc_eps = 1e-6F;
  c.post_mult = 2;
  c.rms_norm_eps = 1e-20F;
  return {trace_metadata(c), trace_tensors(c)};
}

std::string save(const Draft& draft, const TempDir& dir) {
  const std::string path = dir / "draft.safetensors";
  auto writer = SafetensorsWriter::create(path, draft.metadata, draft.tensors);
  EXPECT_TRUE(writer.ok()) << writer.fault().message();
  for (const TensorSpec& tensor : draft.tensors) {
    const std::vector<std::byte> zeros(*tensor_bits(tensor.dtype, tensor.shape) / 8);
    EXPECT_TRUE(writer->write(tensor.name, zeros).ok());
  }
  const Status committed = writer->commit();
  EXPECT_TRUE(committed.ok()) << committed.fault().message();
  return path;
}

TEST(TraceFaults, AnUnchangedDraftOpens) {
  TempDir dir;
  for (const ModelType model : {ModelType::kDeepseekV4, ModelType::kDeepseekV41, ModelType::kGlm5Next}) {
    const auto trace = Trace::open(save(draft_of(model), dir));
    ASSERT_TRUE(trace.ok()) << trace.fault().message();
    EXPECT_EQ(trace->constants().model, model);
    EXPECT_EQ(trace->constants().rms_norm_eps, 1e-20F);
    EXPECT_EQ(trace->constants().sinkhorn_iters, 7);
  }
}

TEST(TraceFaults, EveryMetadataEntryIsNeeded) {
  TempDir dir;
  const Draft whole = draft_of(ModelType::kDeepseekV4);
  int cases = 0;
  for (const auto& [key, value] : whole.metadata) {
    Draft draft = whole;
    draft.metadata.erase(key);
    const auto trace = Trace::open(save(draft, dir));
    ASSERT_FALSE(trace.ok()) << key;
    EXPECT_EQ(trace.fault().code, Errc::kMissingMetadata) << key;
    EXPECT_NE(trace.fault().message().find(key), std::string::npos) << trace.fault().message();
    ++cases;
  }
  EXPECT_EQ(cases, 11);
}

TEST(TraceFaults, EveryTensorIsNeededInItsDtypeAndShape) {
  TempDir dir;
  int cases = 0;
  for (const ModelType model : {ModelType::kDeepseekV4, ModelType::kDeepseekV41, ModelType::kGlm5Next}) {
    const Draft whole = draft_of(model);
    for (const TensorSpec& tensor : whole.tensors) {
      const struct {
        Errc wanted;
        std::function<void(Draft&)> change;
      } faults[] = {
          {Errc::kMissingTensor, [&](Draft& d) { d.drop(tensor.name); }},
          {Errc::kWrongDtype, [&](Draft& d) { d.find(tensor.name).dtype = Dtype::kF64; }},
          {Errc::kWrongShape, [&](Draft& d) { ++d.find(tensor.name).shape.back(); }},
          {Errc::kWrongShape, [&](Draft& d) { d.find(tensor.name).shape.push_back(1); }},
      };
      for (const auto& fault : faults) {
        Draft draft = whole;
        fault.change(draft);
        const auto trace = Trace::open(save(draft, dir));
        ASSERT_FALSE(trace.ok()) << tensor.name;
        EXPECT_EQ(trace.fault().code, fault.wanted) << tensor.name;
        EXPECT_EQ(trace.fault().where, tensor.name);
        ++cases;
      }
    }
  }
  // 4 faults of: embedding, 2 layers of 19 or 23 tensors, and 5, 3 or 3 of the head.
  EXPECT_EQ(cases, 4 * ((1 + 2 * 19 + 5) + (1 + 2 * 23 + 3) + (1 + 2 * 19 + 3)));
}

TEST(TraceFaults, MalformedMetadata) {
  TempDir dir;
  const struct {
    const char *key, *value;
    Errc wanted;
  } cases[] = {
      {"format", "flashmhc-trace-2", Errc::kWrongFormat},
      {"model_type", "deepseek_v3", Errc::kBadMetadata},
      {"dtype", "bf16", Errc::kBadMetadata},
      {"hidden_size", "0", Errc::kBadMetadata},
      {"hidden_size", "-3", Errc::kBadMetadata},
      {"hidden_size", "3.0", Errc::kBadMetadata},
      {"hidden_size", " 3", Errc::kBadMetadata},
      {"hidden_size", "", Errc::kBadMetadata},
      {"hidden_size", "99999999999999999999", Errc::kBadMetadata},
      {"num_hidden_layers", "1000000000", Errc::kBadMetadata},
      {"hc_mult", "9", Errc::kBadMetadata},
      {"tokens", "-1", Errc::kBadMetadata},
      {"tokens", "0x1", Errc::kBadMetadata},
      {"hc_sinkhorn_iters", "0", Errc::kBadMetadata},
      {"hc_eps", "nan", Errc::kBadMetadata},
      {"hc_eps", "-1e-6", Errc::kBadMetadata},
      {"hc_eps", "1e-6f", Errc::kBadMetadata},
      {"hc_post_mult", "inf", Errc::kBadMetadata},
      {"hc_post_mult", "two", Errc::kBadMetadata},
      {"rms_norm_eps", "1e-99", Errc::kBadMetadata},
      {"rms_norm_eps", "1,5", Errc::kBadMetadata},
  };
  for (const auto& item : cases) {
    Draft draft = draft_of(ModelType::kDeepseekV41);
    draft.metadata[item.key] = item.value;
    const auto trace = Trace::open(save(draft, dir));
    ASSERT_FALSE(trace.ok()) << item.key << "=" << item.value;
    EXPECT_EQ(trace.fault().code, item.wanted) << trace.fault().message();
    EXPECT_NE(trace.fault().message().find(item.key), std::string::npos) << trace.fault().message();
  }
  EXPECT_EQ(std::size(cases), 21U);
}

// A layer count that the file does not hold is found at the first missing tensor, not after a million names.
TEST(TraceFaults, MoreLayersThanTheFileHolds) {
  TempDir dir;
  Draft draft = draft_of(ModelType::kDeepseekV4);
  draft.metadata["num_hidden_layers"] = "4096";
  const auto trace = Trace::open(save(draft, dir));
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.fault().code, Errc::kMissingTensor);
  EXPECT_EQ(trace.fault().where, "model.layers.2.attn_hc.fn");
}

}  // namespace
}  // namespace fmhc::io
