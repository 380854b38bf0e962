#include "cli/synth_noise.h"

#include <cmath>
#include <numbers>

#include "check/storage.h"
#include "cli/trunk_ops.h"

namespace fmhc::cli {
namespace {

constexpr double kEmbeddingRms = 0.05, kNormSpread = 0.1;
constexpr double kScaleLeast = 0.7, kScaleMost = 1.3;
constexpr double kPeakedScale = 8, kPeakedBase = 3;
constexpr double kGainSpread = 0.3, kTokenSpread = 0.4;
// One channel in this many is an outlier, by a factor between these two.
constexpr double kOutlierEvery = 512, kOutlierLeast = 8, kOutlierMost = 30;
// Output of a sublayer against the embedding; it grows with depth, as the residual does.
constexpr double kAttnRms = 0.06, kFfnRms = 0.2, kGrowth = 0.03;

int64_t element_count(const io::HostTensor& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  return count;
}

void store_value(double value, int64_t index, io::HostTensor& tensor) {
  check::store(value, storage_dtype(tensor.dtype), tensor.buffer.data(), index);
}

}  // namespace

// FNV-1a of the name, mixed with the seed.
Noise::Noise(uint64_t seed, std::string_view name) : state_(0xcbf29ce484222325) {
  for (const char letter : name) state_ = (state_ ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  state_ ^= seed * 0x9e3779b97f4a7c15;
  next();
}

// splitmix64.
uint64_t Noise::next() {
  uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

double Noise::uniform() {
  return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53;
}

double Noise::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2 * std::log(uniform())), angle = 2 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

SynthSource::SynthSource(const io::TraceConstants& constants, uint64_t seed, bool peaked)
    : constants_(constants), seed_(seed), peaked_(peaked) {
  Noise noise(seed, "channel_gain");
  double squares = 0;
  for (int64_t h = 0; h < constants.hidden; ++h) {
    double gain = std::exp(kGainSpread * noise.normal());
    if (noise.uniform() * kOutlierEvery < 1)
      gain *= kOutlierLeast + (kOutlierMost - kOutlierLeast) * noise.uniform();
    channel_gain_.push_back(gain);
    squares += gain * gain;
  }
  for (double& gain : channel_gain_) gain *= std::sqrt(static_cast<double>(constants.hidden) / squares);
}

void SynthSource::fill_rows(const std::string& name, double rms, io::HostTensor& tensor) const {
  Noise noise(seed_, name);
  int64_t index = 0;
  for (int64_t token = 0; token < constants_.tokens; ++token) {
    const double size = rms * std::exp(kTokenSpread * noise.normal());
    for (const double gain : channel_gain_) store_value(size * gain * noise.normal(), index++, tensor);
  }
}

void SynthSource::fill_fn(const std::string& name, io::HostTensor& tensor) const {
  // The projected row has mean square 1 after its RMS fold, so this makes the variance of a dot product 1.
  const double size = 1 / std::sqrt(static_cast<double>(constants_.streams * constants_.hidden));
  Noise noise(seed_, name);
  const int64_t count = element_count(tensor);
  for (int64_t index = 0; index < count; ++index) store_value(size * noise.normal(), index, tensor);
}

void SynthSource::fill_norm(const std::string& name, io::HostTensor& tensor) const {
  Noise noise(seed_, name);
  for (int64_t h = 0; h < constants_.hidden; ++h) store_value(1 + kNormSpread * noise.normal(), h, tensor);
}

void SynthSource::fill_site(int64_t layer, io::Site site, io::SiteRecord& record) const {
  const auto name = [&](io::HostTensor io::SiteRecord::*member) {
    return io::site_tensor_name(member, layer, site);
  };
  fill_fn(name(&io::SiteRecord::fn), record.fn);
  Noise scale(seed_, name(&io::SiteRecord::scale)), base(seed_, name(&io::SiteRecord::base));
  for (int64_t group = 0; group < 3; ++group) {
    const double value = kScaleLeast + (kScaleMost - kScaleLeast) * scale.uniform();
    store_value(peaked_ && group == 2 ? kPeakedScale * value : value, group, record.scale);
  }
  for (int64_t logit = 0; logit < constants_.mixes(); ++logit) {
    const bool is_comb = logit >= 2 * constants_.streams;
    store_value((peaked_ && is_comb ? kPeakedBase : 1) * base.normal(), logit, record.base);
  }
  fill_norm(name(&io::SiteRecord::norm_weight), record.norm_weight);
  const double rms =
      (site == io::Site::kAttn ? kAttnRms : kFfnRms) * std::exp(kGrowth * static_cast<double>(layer));
  fill_rows(name(&io::SiteRecord::sublayer_output), rms, record.sublayer_output);
}

void SynthSource::fill_head(io::HeadRecord& record) const {
  if (constants_.has_head_weights()) {
    fill_fn(io::head_tensor_name(&io::HeadRecord::fn), record.fn);
    Noise noise(seed_, io::head_tensor_name(&io::HeadRecord::base));
    store_value(1, 0, record.scale);
    for (int64_t stream = 0; stream < constants_.streams; ++stream)
      store_value(noise.normal(), stream, record.base);
  } else {
    fill_norm(io::head_tensor_name(&io::HeadRecord::norm_weight), record.norm_weight);
  }
}

void SynthSource::fill_embedding(io::HostTensor& embedding) const {
  fill_rows(io::kEmbeddingName, kEmbeddingRms, embedding);
}

}  // namespace fmhc::cli
