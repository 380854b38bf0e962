// A trace as the calls that replay it: recorded tensors widened to exact doubles, and one check::Case for
// each step of the trunk.
#pragma once

#include "check/run_case.h"
#include "cli/console.h"
#include "io/trace.h"

namespace fmhc::cli {

using check::Case;
using check::Tensors;
using check::Values;

// The recorded tensors of a site, or of the exit (then `residual` and `layer_input` are what enters and
// leaves it, and fn, scale, base may be empty).
struct Recorded {
  int64_t layer = 0;
  const char* site = "";
  Values fn, scale, base, norm_weight;
  Values residual, sublayer_output;
  Values layer_input, post_mix, comb_mix, pre_mix, normed_input, residual_out;
};

class TraceCalls {
 public:
  explicit TraceCalls(io::Trace trace);  // of a valid file

  const io::Trace& trace() const { return trace_; }
  const io::TraceConstants& constants() const { return trace_.constants(); }
  std::string note() const;  // "note" and "source" of the metadata
  int32_t dtype() const;     // fmhc_dtype of the residual
  int64_t sites() const { return constants().layers * 2; }
  bool carried() const { return constants().carried_pre(); }

  Values load_embedding() const;
  Recorded load_site(int64_t index) const;  // in running order
  Recorded load_exit() const;

  Case expand(const Values& embedding) const;
  // `carried` is the mix of the site before; empty for models without. With `norm` the RMSNorm follows.
  Case pre(const Recorded& weights, Values residual, const Values& carried, bool norm = false) const;
  Case post(Values residual, Values sublayer_output, Values post_mix, Values comb_mix) const;
  // Post with the coefficients in `post`, pre with the weights of the next site.
  Case seam(const Case& post, const Recorded& next, const Values& carried) const;
  Case exit(const Recorded& exit, Values residual, const Values& carried) const;

  // What the first site of a model with a carried mix collapses with: stream 0.
  Values first_mix() const;

 private:
  Case start(int32_t op) const;

  io::Trace trace_;
};

// A safetensors file that is no trace, or a damaged one, ends the tool with exit code 2.
TraceCalls open_trace(const std::string& path);

}  // namespace fmhc::cli
