// flashmhc synth: a random trace of a model's shape, in the format and with the tensors of a recorded one.
// What a recording holds of the operators' results is computed here with the reference backend, so that the
// trace agrees with itself at any size. Layers go to disk as they are made.
#include <charconv>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/file_result.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/synth_noise.h"
#include "cli/thread_pool.h"
#include "cli/trunk_ops.h"
#include "io/safetensors_writer.h"

namespace fmhc::cli {
namespace {

constexpr const char* kSchema = "flashmhc-synth-1";
constexpr int64_t kStreams = 4;

struct Model {
  const char *name, *preset;
  io::ModelType type;
  int64_t hidden;
};

constexpr Model kModels[] = {
    {"v4-flash", "deepseek_v4", io::ModelType::kDeepseekV4, 4096},
    {"v4-pro", "deepseek_v4", io::ModelType::kDeepseekV4, 7168},
    {"v41-flash", "deepseek_v41", io::ModelType::kDeepseekV41, 5120},
    {"glm5", "glm5", io::ModelType::kGlm5Next, 4096},
};

struct Options {
  std::string model, out, dtype = "bf16";
  int64_t tokens = 0, layers = 0, hidden = 0;
  uint64_t seed = 0;
  int threads = 0;
  bool peaked = false, json = false;
};

io::TraceConstants constants_of(const Options& options) {
  const auto* model = std::begin(kModels);
  while (options.model != model->name) ++model;  // the parser let only these names through
  fmhc_problem problem{};
  problem.struct_size = sizeof problem;
  fmhc_diag diag{};
  require_ok(fmhc_preset(model->preset, &problem, &diag), diag);
  const fmhc_consts& consts = problem.consts;
  io::TraceConstants c;
  c.model = model->type;
  c.dtype = options.dtype == "f32" ? io::Dtype::kF32 : io::Dtype::kBF16;
  c.hidden = options.hidden > 0 ? options.hidden : model->hidden;
  c.layers = options.layers;
  c.streams = kStreams;
  c.tokens = options.tokens;
  c.sinkhorn_iters = consts.sinkhorn_iters;
  c.hc_eps = consts.sinkhorn_eps;
  c.post_mult = consts.post_mult;
  c.rms_norm_eps = consts.rms_eps;
  return c;
}

class Synth {
 public:
  Synth(const Options& options, const io::TraceConstants& constants, io::SafetensorsWriter& writer,
        const InterruptGuard& interrupts)
      : constants_(constants),
        writer_(writer),
        interrupts_(interrupts),
        source_(constants, options.seed, options.peaked),
        pool_(options.threads > 0 ? options.threads : hardware_threads()),
        ops_(constants, "ref", pool_.executor()),
        progress_("sites", 2 * constants.layers) {
    for (io::TensorSpec& spec : io::trace_tensors(constants)) {
      std::string name = spec.name;
      specs_.emplace(std::move(name), std::move(spec));
    }
  }

  void run() {
    begin();
    for (int64_t layer = 0; layer < constants_.layers; ++layer) {
      for (const io::Site site : io::kSites) {
        add_site(layer, site);
        progress_.advance();
      }
    }
    add_head();
  }

 private:
  io::HostTensor allocate(const std::string& name) const {
    const io::TensorSpec& spec = specs_.at(name);
    const uint64_t bytes = *io::tensor_bits(spec.dtype, spec.shape) / 8;
    io::HostTensor tensor{spec.dtype, spec.shape, io::Buffer(bytes)};
    if (!tensor.buffer.allocated()) throw std::bad_alloc();
    return tensor;
  }

  void write(const std::string& name, const io::HostTensor& tensor) {
    interrupts_.check();
    take(writer_.write(name, tensor.buffer.bytes()));
  }

  // The streams start as four copies of the embedding; V4.1 collapses its first site with stream 0.
  void begin() {
    io::HostTensor embedding = allocate(io::kEmbeddingName);
    source_.fill_embedding(embedding);
    write(io::kEmbeddingName, embedding);
    residual_ = allocate(io::site_tensor_name(&io::SiteRecord::residual, 0, io::Site::kAttn));
    fmhc_args args{};
    args.residual = recorded(embedding);
    args.residual_out = output(residual_);
    ops_.run(FMHC_EXPAND, args);
    if (!constants_.carried_pre()) return;
    carried_ = allocate(io::site_tensor_name(&io::SiteRecord::pre_mix, 0, io::Site::kAttn));
    for (int64_t index = 0; index < constants_.tokens * constants_.streams; ++index) {
      carried_.as<float>()[index] = index % constants_.streams == 0 ? 1.0F : 0.0F;
    }
  }

  void add_site(int64_t layer, io::Site site) {
    io::SiteRecord record;
    const auto name = [&](io::HostTensor io::SiteRecord::*member) {
      return io::site_tensor_name(member, layer, site);
    };
    for (auto member :
         {&io::SiteRecord::fn, &io::SiteRecord::scale, &io::SiteRecord::base, &io::SiteRecord::norm_weight,
          &io::SiteRecord::post_mix, &io::SiteRecord::comb_mix, &io::SiteRecord::layer_input,
          &io::SiteRecord::sublayer_output, &io::SiteRecord::residual_out}) {
      record.*member = allocate(name(member));
    }
    source_.fill_site(layer, site, record);
    record.residual = std::move(residual_);
    write(name(&io::SiteRecord::residual), record.residual);
    run_pre(name, record);
    run_post(record);
    for (auto member : {&io::SiteRecord::fn, &io::SiteRecord::scale, &io::SiteRecord::base,
                        &io::SiteRecord::norm_weight, &io::SiteRecord::post_mix, &io::SiteRecord::comb_mix,
                        &io::SiteRecord::layer_input, &io::SiteRecord::sublayer_output}) {
      write(name(member), record.*member);
    }
    // Inside a layer the same tensor is the next site's residual.
    if (site == io::Site::kFfn) write(name(&io::SiteRecord::residual_out), record.residual_out);
    residual_ = std::move(record.residual_out);
  }

  template <class Name>
  void run_pre(const Name& name, io::SiteRecord& record) {
    fmhc_args args{};
    args.residual = recorded(record.residual);
    args.fn = weight(record.fn);
    args.scale = weight(record.scale);
    args.base = weight(record.base);
    args.layer_input = output(record.layer_input);
    args.post_mix = output(record.post_mix);
    args.comb_mix = output(record.comb_mix);
    if (!constants_.carried_pre()) {
      ops_.run(FMHC_PRE, args);
      return;
    }
    record.pre_mix = allocate(name(&io::SiteRecord::pre_mix));
    record.normed_input = allocate(name(&io::SiteRecord::normed_input));
    args.pre_in = recorded(carried_);
    args.pre_mix = output(record.pre_mix);
    ops_.run(FMHC_PRE, args);
    fmhc_args norm{};
    norm.residual = args.residual;
    norm.pre_in = args.pre_in;
    norm.norm_weight = weight(record.norm_weight);
    norm.layer_input = output(record.normed_input);
    ops_.run(FMHC_CONTRACT, norm, FMHC_NORM_UNFUSED);
    write(name(&io::SiteRecord::pre_mix), record.pre_mix);
    write(name(&io::SiteRecord::normed_input), record.normed_input);
    carried_ = std::move(record.pre_mix);
  }

  void run_post(io::SiteRecord& record) {
    fmhc_args args{};
    args.residual = recorded(record.residual);
    args.sublayer_output = recorded(record.sublayer_output);
    args.post_in = recorded(record.post_mix);
    args.comb_in = recorded(record.comb_mix);
    args.residual_out = output(record.residual_out);
    ops_.run(FMHC_POST, args);
  }

  void add_head() {
    io::HeadRecord record;
    std::vector<io::HostTensor io::HeadRecord::*> members = {&io::HeadRecord::output};
    if (constants_.has_head_weights()) {
      members.insert(members.end(), {&io::HeadRecord::fn, &io::HeadRecord::scale, &io::HeadRecord::base});
    } else {
      members.push_back(&io::HeadRecord::norm_weight);
    }
    for (auto member : members) record.*member = allocate(io::head_tensor_name(member));
    source_.fill_head(record);
    fmhc_args args{};
    args.residual = recorded(residual_);
    args.layer_input = output(record.output);
    if (constants_.has_head_weights()) {
      args.fn = weight(record.fn);
      args.scale = weight(record.scale);
      args.base = weight(record.base);
    }
    if (constants_.carried_pre()) args.pre_in = recorded(carried_);
    ops_.run(constants_.has_head_weights() ? FMHC_HEAD : FMHC_CONTRACT, args);
    write(io::head_tensor_name(&io::HeadRecord::residual), residual_);
    for (auto member : members) write(io::head_tensor_name(member), record.*member);
  }

  io::TraceConstants constants_;
  io::SafetensorsWriter& writer_;
  const InterruptGuard& interrupts_;
  SynthSource source_;
  ThreadPool pool_;
  TrunkOps ops_;
  Progress progress_;
  std::map<std::string, io::TensorSpec> specs_;
  io::HostTensor residual_;  // entering the next site
  io::HostTensor carried_;   // V4.1: what the next site collapses with
};

// The parser would turn "-1" and numbers beyond 64 bits into some other seed.
std::string whole_seed(const std::string& text) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && stop == text.data() + text.size();
  return whole ? "" : "seed \"" + text + "\" is no whole number from 0 to 2^64 - 1";
}

int make_trace(const Options& options) {
  const io::TraceConstants constants = constants_of(options);
  io::Metadata metadata = io::trace_metadata(constants);
  metadata["source"] = std::string("flashmhc ") + fmhc_version() + " synth " + options.model;
  metadata["note"] = "synthetic, seed " + std::to_string(options.seed) + (options.peaked ? ", peaked" : "");
  const InterruptGuard interrupts;  // from before the temporary file exists until it has its name
  auto writer = take(io::SafetensorsWriter::create(options.out, metadata, io::trace_tensors(constants)));
  Synth(options, constants, writer, interrupts).run();
  take(writer.commit());
  if (options.json) {
    print_json({{"schema", kSchema},
                {"path", options.out},
                {"bytes", writer.file_bytes()},
                {"tensors", io::trace_tensors(constants).size()},
                {"metadata", metadata}});
  } else {
    std::cout << options.out << ": " << options.model << ", " << constants.layers << " layers, "
              << constants.tokens << " tokens, hidden size " << constants.hidden << ", " << options.dtype
              << ", " << writer.file_bytes() << " bytes\n";
  }
  return kExitOk;
}

}  // namespace

Command add_synth(CLI::App& app, const Environment&) {
  auto options = std::make_shared<Options>();
  std::vector<std::string> names;
  for (const Model& model : kModels) names.emplace_back(model.name);
  constexpr int64_t kMostExtent = int64_t{1} << 31, kMostLayers = 4096;
  app.add_option("--model", options->model, "Shape, constants and tensors of this model")
      ->required()
      ->check(CLI::IsMember(names));
  app.add_option("--tokens", options->tokens, "Tokens")
      ->required()
      ->check(CLI::Range(int64_t{0}, kMostExtent));
  app.add_option("--layers", options->layers, "Layers, two sites each")
      ->required()
      ->check(CLI::Range(int64_t{1}, kMostLayers));
  app.add_option("--out", options->out, "File to write; replaced only when the trace is complete")
      ->required();
  app.add_option("--seed", options->seed, "Seed of every value; the same seed gives the same file")
      ->check(whole_seed)
      ->capture_default_str();
  app.add_option("--hidden", options->hidden, "Hidden size instead of the model's")
      ->check(CLI::Range(int64_t{1}, kMostExtent));
  app.add_option("--dtype", options->dtype, "Storage of the streams")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app.add_option("--threads", options->threads, "Threads; all of the machine's if not given")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--peaked", options->peaked,
               "Wide mixing logits, for which 20 Sinkhorn rounds do not converge");
  add_json_flag(app, &options->json);
  return [options] { return make_trace(*options); };
}

}  // namespace fmhc::cli
