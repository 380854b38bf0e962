// The operators of a trunk on tensors of a trace, through the C interface: one plan for each operator, made
// at its first use for the trace's token count, and one scratch buffer for all of them.
#pragma once

#include <map>
#include <string>

#include "cli/console.h"
#include "io/trace.h"

namespace fmhc::cli {

int32_t storage_dtype(io::Dtype dtype);  // fmhc_dtype of a floating point format; 0 for others

// A tensor as the library takes it; a recorded one loses its batch axis of 1.
fmhc_in weight(const io::HostTensor& tensor);
fmhc_in recorded(const io::HostTensor& tensor);
fmhc_out output(io::HostTensor& tensor);  // recorded

class TrunkOps {
 public:
  // kernel: a hint of the library ("ref"), or empty for its own choice. executor: may be null.
  TrunkOps(const io::TraceConstants& constants, std::string kernel, const fmhc_executor* executor);

  // Completes args with scratch and executor and runs; what the library refuses is a Failure.
  void run(fmhc_op op, fmhc_args args, fmhc_norm norm = FMHC_NORM_NONE);

 private:
  const fmhc_plan& plan_for(fmhc_op op, fmhc_norm norm);

  io::TraceConstants constants_;
  std::string kernel_;
  const fmhc_executor* executor_;
  std::map<std::pair<fmhc_op, fmhc_norm>, fmhc_plan> plans_;
  std::unique_ptr<std::byte, void (*)(std::byte*)> scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace fmhc::cli
