// test and sanitize: the lists of parts. Numerics come first, destructive parts last.
#include "tests.h"

namespace fmhc_gpu {
namespace {

const std::vector<Part> kTestParts = {
    {"first", 10, test_first},         {"harness", 10, test_harness},
    {"views", 30, test_views},         {"empty", 10, test_empty},
    {"memory", 15, test_memory},       {"edges", 30, test_edges},
    {"isolation", 20, test_isolation}, {"invariant", 45, test_invariant},
    {"repeat", 30, test_repeat},       {"streams", 20, test_streams},
    {"tokens", 20, test_tokens},       {"busy", 20, test_busy},
    {"graph", 40, test_graph},         {"pdl", 30, test_pdl},
    {"large", 60, test_large},         {"fuzz", 150, test_fuzz},
    {"devices", 15, test_devices},     {"pending", 10, test_pending},
    {"sticky", 10, test_sticky},
};

// Small enough for compute-sanitizer: every kernel of the build that takes the problem, by name.
Result sanitize_all(const Options& options) {
  Bed bed(options, size_t{64} << 20, size_t{32} << 20);
  Figure figure(options, "sanitize");
  uint64_t seed = options.seed;
  for (int32_t index = 0; fmhc_kernel_name(index) != nullptr; ++index) {
    const std::string kernel = fmhc_kernel_name(index);
    if (kernel.rfind(bed.device.is_cuda() ? "cuda." : "ref.", 0) != 0) continue;
    if (!options.kernel.empty() && kernel.rfind(options.kernel, 0) != 0) continue;
    for (const int32_t op : kAllOps) {
      for (const int64_t tokens : {int64_t{1}, int64_t{3}, int64_t{33}, int64_t{70}}) {
        for (const int64_t hidden : {int64_t{256}, int64_t{320}, int64_t{512}}) {
          if (bed.late()) {
            figure.fail("time", "not all kernels ran");
            return figure.finish();
          }
          CaseSpec spec = make_case(op, hidden, tokens, ++seed);
          spec.kernel = kernel;
          spec.problem.norm = hidden == 320 ? FMHC_NORM_NONE : spec.problem.norm;
          spec.problem.norm_weight_dtype = spec.problem.norm == FMHC_NORM_NONE ? 0 : FMHC_BF16;
          spec.problem.residual_dtype = tokens == 3 ? FMHC_FP32 : FMHC_BF16;
          spec.problem.projection = projects(op) && seed % 2 == 0 ? FMHC_CLASS_F : spec.problem.projection;
          spec.problem.coresident_units = seed % 3 == 0 ? bed.device.target().num_units : 0;
          spec.problem.pdl = seed % 2;
          Prepared call;
          if (prepare(bed.device, bed.arena, spec, &call) != Ready::kYes) continue;
          if (!bed.launch(&figure, call)) continue;
          bed.device.wait();
          figure.count(call.kernel);
          figure.add(spec, call.kernel, bed.judge.compare(call, bounds_for(spec, options.strict)));
        }
      }
    }
  }
  return figure.finish();
}

}  // namespace

Result run_tests(const Options& options) {
  return run_command(options, "test", kTestParts, 400);
}

// In this very process: the tool watches no children.
Result run_sanitize(const Options& options) {
  Options own = options;
  if (own.seconds <= 0) own.seconds = 60;
  arm_timeout(own.seconds + 20);
  return sanitize_all(own);
}

}  // namespace fmhc_gpu
