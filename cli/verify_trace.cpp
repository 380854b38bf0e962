#include "cli/verify_trace.h"

#include "check/storage.h"
#include "cli/file_result.h"
#include "cli/trunk_ops.h"

namespace fmhc::cli {
namespace {

Values widen(const io::HostTensor& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  if (tensor.shape.empty()) return {};
  Values values(static_cast<size_t>(count));
  const int32_t dtype = storage_dtype(tensor.dtype);
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = check::load(tensor.buffer.data(), dtype, i);
  }
  return values;
}

}  // namespace

TraceCalls open_trace(const std::string& path) {
  return TraceCalls(take(io::Trace::open(path)));
}

TraceCalls::TraceCalls(io::Trace trace) : trace_(std::move(trace)) {}

std::string TraceCalls::note() const {
  std::string text;
  for (const char* key : {"note", "source"}) {
    const auto found = trace_.file().metadata().find(key);
    if (found != trace_.file().metadata().end()) text += found->second + "\n";
  }
  return text;
}

int32_t TraceCalls::dtype() const {
  return storage_dtype(constants().dtype);
}

Values TraceCalls::load_embedding() const {
  return widen(take(trace_.load_embedding()));
}

Recorded TraceCalls::load_site(int64_t index) const {
  const io::Site site = io::kSites[index % 2];
  const io::SiteRecord record = take(trace_.load_site(index / 2, site));
  Recorded out;
  out.layer = index / 2;
  out.site = io::site_name(site);
  const std::pair<Values Recorded::*, io::HostTensor io::SiteRecord::*> members[] = {
      {&Recorded::fn, &io::SiteRecord::fn},
      {&Recorded::scale, &io::SiteRecord::scale},
      {&Recorded::base, &io::SiteRecord::base},
      {&Recorded::norm_weight, &io::SiteRecord::norm_weight},
      {&Recorded::residual, &io::SiteRecord::residual},
      {&Recorded::sublayer_output, &io::SiteRecord::sublayer_output},
      {&Recorded::layer_input, &io::SiteRecord::layer_input},
      {&Recorded::post_mix, &io::SiteRecord::post_mix},
      {&Recorded::comb_mix, &io::SiteRecord::comb_mix},
      {&Recorded::pre_mix, &io::SiteRecord::pre_mix},
      {&Recorded::normed_input, &io::SiteRecord::normed_input},
      {&Recorded::residual_out, &io::SiteRecord::residual_out},
  };
  for (const auto& [to, from] : members) out.*to = widen(record.*from);
  return out;
}

Recorded TraceCalls::load_exit() const {
  const io::HeadRecord record = take(trace_.load_head());
  Recorded out;
  out.layer = constants().layers;
  out.site = "exit";
  out.fn = widen(record.fn);
  out.scale = widen(record.scale);
  out.base = widen(record.base);
  out.residual = widen(record.residual);
  out.layer_input = widen(record.output);
  return out;
}

Case TraceCalls::start(int32_t op) const {
  const io::TraceConstants& c = constants();
  Case call;
  call.tokens = c.tokens;
  fmhc_problem& problem = call.problem;
  problem.struct_size = sizeof problem;
  problem.op = op;
  problem.streams = static_cast<int32_t>(c.streams);
  problem.residual_dtype = dtype();
  problem.projection = FMHC_CLASS_F;
  problem.hidden = c.hidden;
  problem.max_tokens = c.tokens;
  problem.consts = {c.rms_norm_eps, c.hc_eps, c.hc_eps, c.post_mult, c.rms_norm_eps, c.sinkhorn_iters};
  return call;
}

Case TraceCalls::expand(const Values& embedding) const {
  Case call = start(FMHC_EXPAND);
  call.in.residual = embedding;
  return call;
}

Case TraceCalls::pre(const Recorded& weights, Values residual, const Values& mix, bool norm) const {
  Case call = start(FMHC_PRE);
  call.in.residual = std::move(residual);
  call.in.fn = weights.fn;
  call.in.scale = weights.scale;
  call.in.base = weights.base;
  call.problem.carried_pre = carried() ? 1 : 0;
  if (carried()) call.in.pre_in = mix;
  if (norm) {
    call.problem.norm = FMHC_NORM_UNFUSED;
    call.problem.norm_weight_dtype = dtype() == FMHC_BF16 ? FMHC_BF16 : FMHC_FP32;
    call.in.norm_weight = weights.norm_weight;
  }
  return call;
}

Case TraceCalls::post(Values residual, Values sublayer_output, Values post_mix, Values comb_mix) const {
  Case call = start(FMHC_POST);
  call.in.residual = std::move(residual);
  call.in.sublayer_output = std::move(sublayer_output);
  call.in.post_in = std::move(post_mix);
  call.in.comb_in = std::move(comb_mix);
  return call;
}

Case TraceCalls::seam(const Case& post, const Recorded& next, const Values& mix) const {
  Case call = pre(next, post.in.residual, mix);
  call.problem.op = FMHC_SEAM;
  call.in.sublayer_output = post.in.sublayer_output;
  call.in.post_in = post.in.post_in;
  call.in.comb_in = post.in.comb_in;
  return call;
}

Case TraceCalls::exit(const Recorded& exit, Values residual, const Values& mix) const {
  const bool weights = constants().has_head_weights();
  Case call = start(weights ? FMHC_HEAD : FMHC_CONTRACT);
  call.in.residual = std::move(residual);
  if (weights) {
    call.in.fn = exit.fn;
    call.in.scale = exit.scale;
    call.in.base = exit.base;
  } else if (carried()) {
    call.problem.carried_pre = 1;
    call.in.pre_in = mix;
  }
  return call;
}

Values TraceCalls::first_mix() const {
  if (!carried()) return {};
  const auto n = static_cast<size_t>(constants().streams);
  Values mix(static_cast<size_t>(constants().tokens) * n);
  for (size_t i = 0; i < mix.size(); i += n) mix[i] = 1;
  return mix;
}

}  // namespace fmhc::cli
