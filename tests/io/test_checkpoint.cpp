// Checkpoints: both naming schemes, one file, shards and directories, and what is reported as missing or odd.
#include "io/checkpoint.h"

#include <algorithm>

#include "io/safetensors_writer.h"
#include "io/shard_index.h"
#include "tests/io/files.h"

namespace fmhc::io {
namespace {

using test::TempDir;
using test::write_file;

constexpr int64_t kStreams = 2, kHidden = 5, kMixes = kStreams * (kStreams + 2);

void save(const std::string& path, const std::vector<TensorSpec>& specs) {
  auto writer = SafetensorsWriter::create(path, {}, specs);
  ASSERT_TRUE(writer.ok()) << writer.fault().message();
  for (const TensorSpec& spec : specs) {
    ASSERT_TRUE(
        writer->write(spec.name, std::vector<std::byte>(*tensor_bits(spec.dtype, spec.shape) / 8)).ok());
  }
  ASSERT_TRUE(writer->commit().ok());
}

void add_site(std::vector<TensorSpec>& specs, const std::string& front) {
  specs.push_back({front + "fn", Dtype::kF32, {kMixes, kStreams * kHidden}});
  specs.push_back({front + "base", Dtype::kF32, {kMixes}});
  specs.push_back({front + "scale", Dtype::kF32, {3}});
}

void add_head(std::vector<TensorSpec>& specs, const std::string& front) {
  specs.push_back({front + "fn", Dtype::kF32, {kStreams, kStreams * kHidden}});
  specs.push_back({front + "base", Dtype::kF32, {kStreams}});
  specs.push_back({front + "scale", Dtype::kF32, {1}});
}

std::vector<TensorSpec> flat_model() {
  std::vector<TensorSpec> specs;
  for (const char* front : {"layers.0.", "layers.1.", "mtp.0."}) {
    add_site(specs, std::string(front) + "hc_attn_");
    add_site(specs, std::string(front) + "hc_ffn_");
  }
  add_head(specs, "hc_head_");
  add_head(specs, "mtp.0.hc_head_");
  specs.push_back({"layers.0.attn.wq_a.weight", Dtype::kF8E4M3, {4, 4}});
  specs.push_back({"embed.weight", Dtype::kBF16, {4, 4}});
  return specs;
}

std::vector<std::string> labels(const Checkpoint& checkpoint) {
  std::vector<std::string> out;
  for (const HcSite& site : checkpoint.sites()) out.push_back(site.label());
  return out;
}

const std::vector<std::string> kFlatLabels = {"layers.0.attn", "layers.0.ffn", "layers.1.attn",
                                              "layers.1.ffn",  "head",         "mtp.0.attn",
                                              "mtp.0.ffn",     "mtp.0.head"};

TEST(HcNames, BothSchemesWithAnyPrefix) {
  const struct {
    const char *name, *label;
    HcPart part;
  } cases[] = {
      {"layers.3.hc_attn_fn", "layers.3.attn", kFn},
      {"layers.3.hc_ffn_base", "layers.3.ffn", kBase},
      {"model.layers.12.hc_attn_scale", "layers.12.attn", kScale},
      {"model.layers.0.attn_hc.fn", "layers.0.attn", kFn},
      {"model.layers.60.ffn_hc.scale", "layers.60.ffn", kScale},
      {"layers.7.ffn_hc.base", "layers.7.ffn", kBase},
      {"hc_head_fn", "head", kFn},
      {"model.hc_head_base", "head", kBase},
      {"model.hc_head.hc_scale", "head", kScale},
      {"mtp.0.hc_attn_fn", "mtp.0.attn", kFn},
      {"mtp.2.hc_head_base", "mtp.2.head", kBase},
      {"model.mtp.1.ffn_hc.fn", "mtp.1.ffn", kFn},
      {"language_model.model.layers.5.attn_hc.base", "language_model.model.layers.5.attn", kBase},
  };
  for (const auto& item : cases) {
    const auto parsed = parse_hc_name(item.name);
    ASSERT_TRUE(parsed.has_value()) << item.name;
    EXPECT_EQ(parsed->site.label(), item.label);
    EXPECT_EQ(parsed->part, item.part) << item.name;
    EXPECT_EQ(parsed->site.tensor_name(item.part), item.name);
  }
  for (const char* name :
       {"layers.3.attn_norm.weight", "layers.x.hc_attn_fn", "layers..hc_attn_fn", "hc_attn_fn",
        "layers.-1.hc_attn_fn", "layers.3.xhc_attn_fn", "layers.3.hc_attn_fn.weight",
        "layers.99999999999999999999.hc_attn_fn", "players.3.hc_attn_fn", "", "fn", "hc_head"}) {
    EXPECT_FALSE(parse_hc_name(name).has_value()) << name;
  }
}

TEST(Checkpoints, OneFileOfReleasedNames) {
  TempDir dir;
  save(dir / "model.safetensors", flat_model());
  for (const std::string& path : {dir / "model.safetensors", dir.path()}) {
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.fault().message();
    EXPECT_EQ(labels(*checkpoint), kFlatLabels);
    EXPECT_EQ(checkpoint->streams(), kStreams);
    EXPECT_EQ(checkpoint->hidden(), kHidden);
    EXPECT_EQ(checkpoint->tensor_count(), flat_model().size());
    EXPECT_TRUE(checkpoint->problems().empty()) << checkpoint->problems()[0].message();
  }
}

TEST(Checkpoints, RecordedTracesAreCheckpointsToo) {
  for (const char* name : {"hf_v4_h256_l4_f32", "hf_glm5_h256_l4_f32", "sglang_v41_h256_l3_bf16"}) {
    const auto checkpoint = Checkpoint::open(std::string(FMHC_TEST_DATA "/") + name + ".safetensors");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.fault().message();
    EXPECT_TRUE(checkpoint->problems().empty()) << checkpoint->problems()[0].message();
    EXPECT_EQ(checkpoint->streams(), 4);
    EXPECT_EQ(checkpoint->hidden(), 256);
    EXPECT_GE(checkpoint->sites().size(), 6U);
  }
}

// Shards, with a tensor split off into a second file in a folder.
std::string save_sharded(const TempDir& dir) {
  std::vector<TensorSpec> first = flat_model(), second;
  second.assign(first.end() - 9, first.end());
  first.resize(first.size() - 9);
  std::filesystem::create_directory(dir / "more");
  save(dir / "model-1.safetensors", first);
  save(dir / "more/model-2.safetensors", second);
  std::string map;
  for (const auto& spec : first)
    map += (map.empty() ? "\"" : ",\"") + spec.name + "\":\"model-1.safetensors\"";
  for (const auto& spec : second) map += ",\"" + spec.name + "\":\"more/model-2.safetensors\"";
  return R"({"metadata":{"total_size":1.5e3,"note":null},"weight_map":{)" + map + "}}";
}

TEST(Checkpoints, ShardsThroughTheIndexOrTheDirectory) {
  TempDir dir;
  write_file(dir / "model.safetensors.index.json", save_sharded(dir));
  for (const std::string& path : {dir / "model.safetensors.index.json", dir.path()}) {
    const auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.fault().message();
    EXPECT_EQ(labels(*checkpoint), kFlatLabels);
    EXPECT_EQ(checkpoint->shards().size(), 2U);
    EXPECT_TRUE(checkpoint->problems().empty()) << checkpoint->problems()[0].message();
    for (const HcSite& site : checkpoint->sites()) {
      for (const auto& part : site.parts) {
        const auto shard = checkpoint->open_shard(part->shard);
        ASSERT_TRUE(shard.ok());
        EXPECT_TRUE(shard->read(part->info).ok());
      }
    }
  }
}

TEST(Checkpoints, ShardFaults) {
  TempDir dir;
  const std::string index = dir / "model.safetensors.index.json", good = save_sharded(dir);
  const struct {
    std::string from, to;
    Errc wanted;
  } cases[] = {
      {"\"embed.weight\"", "\"embedding.weight\"", Errc::kMissingTensor},
      {"more/model-2.safetensors", "model-3.safetensors", Errc::kCannotOpen},
      {"more/model-2.safetensors", "more", Errc::kNotAFile},
      {"more/model-2.safetensors", "../model-2.safetensors", Errc::kPathEscape},
      {"more/model-2.safetensors", "model.safetensors.index.json", Errc::kHeaderTooLong},
  };
  for (const auto& item : cases) {
    write_file(index, test::replaced(good, item.from, item.to));
    const auto checkpoint = Checkpoint::open(dir.path());
    ASSERT_FALSE(checkpoint.ok()) << item.to;
    EXPECT_STREQ(errc_name(checkpoint.fault().code), errc_name(item.wanted)) << checkpoint.fault().message();
  }
  TempDir empty;
  EXPECT_EQ(Checkpoint::open(empty.path()).fault().code, Errc::kNotAFile);
  EXPECT_EQ(Checkpoint::open(empty / "model.safetensors.index.json").fault().code, Errc::kCannotOpen);
}

// Each change to the flat model, and what is said of it.
TEST(Checkpoints, ProblemsAreNamed) {
  TempDir dir;
  const auto set = [](const char* name, Dtype dtype, Shape shape) {
    return [=](std::vector<TensorSpec>& specs) {
      const auto at =
          std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& s) { return s.name == name; });
      ASSERT_NE(at, specs.end());
      at->dtype = dtype;
      at->shape = shape;
    };
  };
  const auto drop = [](const std::string& part) {
    return [=](std::vector<TensorSpec>& specs) {
      ASSERT_GT(std::erase_if(specs, [&](const TensorSpec& s) { return s.name.find(part) == 0; }), 0U);
    };
  };
  const auto add = [](const std::string& front) {
    return [=](std::vector<TensorSpec>& specs) { add_site(specs, front); };
  };
  const struct {
    std::function<void(std::vector<TensorSpec>&)> change;
    Errc wanted;
    const char* where;
    size_t problems;
  } cases[] = {
      {drop("layers.1.hc_ffn_scale"), Errc::kMissingTensor, "layers.1.hc_ffn_scale", 1},
      {drop("layers.0.hc_attn_fn"), Errc::kMissingTensor, "layers.0.hc_attn_fn", 1},
      {drop("hc_head_base"), Errc::kMissingTensor, "hc_head_base", 1},
      {drop("layers.1.hc_attn_"), Errc::kMissingTensor, "layers.1", 1},
      {drop("layers.0.hc_"), Errc::kMissingTensor, "layers.0", 1},
      {drop("mtp.0.hc_ffn_"), Errc::kMissingTensor, "mtp.0", 1},
      {set("layers.1.hc_ffn_base", Dtype::kBF16, {kMixes}), Errc::kWrongDtype, "layers.1.hc_ffn_base", 1},
      {set("layers.1.hc_ffn_base", Dtype::kF32, {kMixes + 1}), Errc::kWrongShape, "layers.1.hc_ffn_base", 1},
      {set("layers.1.hc_ffn_fn", Dtype::kF32, {kStreams * kHidden, kMixes}), Errc::kWrongShape,
       "layers.1.hc_ffn_fn", 1},
      {set("hc_head_scale", Dtype::kF32, {3}), Errc::kWrongShape, "hc_head_scale", 1},
      {add("model.layers.0.attn_hc."), Errc::kMissingTensor, "model.layers.0", 1},
      {add("layers.0.attn_hc."), Errc::kDuplicateKey, "layers.0.hc_attn_fn", 3},
      {add("layers.9000000000000000000.hc_attn_"), Errc::kMissingTensor, "layers.2", 100},
  };
  for (const auto& item : cases) {
    std::vector<TensorSpec> specs = flat_model();
    item.change(specs);
    save(dir / "model.safetensors", specs);
    const auto checkpoint = Checkpoint::open(dir.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.fault().message();
    const auto& problems = checkpoint->problems();
    EXPECT_EQ(problems.size(), item.problems) << item.where;
    const auto named = std::any_of(problems.begin(), problems.end(), [&](const Fault& fault) {
      return fault.code == item.wanted && fault.where == item.where;
    });
    EXPECT_TRUE(named) << item.where << ": " << (problems.empty() ? "" : problems[0].message());
  }
}

TEST(Checkpoints, AFileWithoutAnySite) {
  TempDir dir;
  save(dir / "x.safetensors", {{"lm_head.weight", Dtype::kBF16, {2, 2}}});
  const auto checkpoint = Checkpoint::open(dir / "x.safetensors");
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_TRUE(checkpoint->sites().empty());
  ASSERT_EQ(checkpoint->problems().size(), 1U);
  EXPECT_EQ(checkpoint->problems()[0].code, Errc::kMissingTensor);
}

}  // namespace
}  // namespace fmhc::io
