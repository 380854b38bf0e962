// How close a result must be to a recording. A recording has its own rounding, so the limits follow from what
// made it: the first profile that fits the trace's model, dtype and notes decides. Options and a bound file
// replace single limits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "check/report.h"
#include "cli/verify_trace.h"

namespace fmhc::cli {

enum class Measure : uint8_t {
  kMaxAbs,        // |got - recorded| of every element
  kRelativeNorm,  // of the whole tensor
  kEqual,         // the same numbers
  kBf16Casts,     // residual_out: every element within what casts of a bf16 model explain, times the limit
};

struct Limit {
  const char* tensor;
  const char* kernel;  // prefix of the kernels it is for; "" all
  Measure measure;
  double limit;
  const char* reason;
};

// A limit of the user's: against the oracle it comes on top, against a recording it replaces.
struct UserLimit {
  Measure measure;
  double limit;
};

class Limits {
 public:
  // Named after the tensors of the records.
  void set(const std::string& tensor, double limit);
  // {"format": "flashmhc-bounds-1", "bounds": {"post_mix": 1e-6, ...}}; docs/verify-schema.md.
  void load(const std::string& path);

  std::optional<UserLimit> user(const std::string& tensor) const;
  // What applies to a tensor of a trace when `kernel` made it.
  std::vector<Limit> recorded(const TraceCalls& trace, const std::string& tensor,
                              const std::string& kernel) const;

  static const std::vector<std::string>& tensors();

 private:
  std::map<std::string, UserLimit> user_;
};

// Compares by every limit; kBf16Casts needs the call of the post and uses its inputs.
void compare_recorded(const std::vector<Limit>& limits, const Values& got, const Values& recorded,
                      const Case& call, check::TensorReport* report);

}  // namespace fmhc::cli
