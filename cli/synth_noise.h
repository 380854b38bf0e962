// The random numbers of a synthetic trace. Every tensor has its own stream, seeded by its name, so that its
// values do not depend on the order in which tensors are made.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "io/trace.h"

namespace fmhc::cli {

class Noise {
 public:
  Noise(uint64_t seed, std::string_view name);

  double uniform();  // in (0, 1)
  double normal();   // mean 0, variance 1

 private:
  uint64_t next();

  uint64_t state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

// What a trained model's tensors look like, as far as the operators can tell: logits of variance 1 (peaked:
// comb logits far wider, so that 20 Sinkhorn rounds do not converge), channels of different size with a few
// very large ones that persist from layer to layer, and tokens of different size.
class SynthSource {
 public:
  SynthSource(const io::TraceConstants& constants, uint64_t seed, bool peaked);

  // Fills fn, scale, base, norm_weight and sublayer_output, whose dtypes and shapes are set.
  void fill_site(int64_t layer, io::Site site, io::SiteRecord& record) const;
  // Fills fn, scale and base where they are allocated, and norm_weight.
  void fill_head(io::HeadRecord& record) const;
  void fill_embedding(io::HostTensor& embedding) const;

 private:
  void fill_rows(const std::string& name, double rms, io::HostTensor& tensor) const;  // [1, T, H]
  void fill_fn(const std::string& name, io::HostTensor& tensor) const;
  void fill_norm(const std::string& name, io::HostTensor& tensor) const;

  io::TraceConstants constants_;
  uint64_t seed_;
  bool peaked_;
  std::vector<double> channel_gain_;  // [H], mean square 1
};

}  // namespace fmhc::cli
