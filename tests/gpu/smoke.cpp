// smoke: every operator with every storage type, norm, class and carried form at a few shapes, against the
// oracle.
#include <algorithm>

#include "tests.h"

namespace fmhc_gpu {
namespace {

struct Shape {
  int64_t tokens, hidden;
  Family family;
};
constexpr Shape kShapes[] = {{1, 256, Family::kNormal},
                             {5, 4096, Family::kPeaked},
                             {33, 7168, Family::kMassive},
                             {130, 100, Family::kHuge}};
constexpr Shape kHostShapes[] = {
    {1, 96, Family::kNormal}, {5, 64, Family::kPeaked}, {9, 56, Family::kMassive}, {17, 36, Family::kHuge}};

Result smoke_op(const Options& options, int32_t op, const std::string& name) {
  Bed bed(options);
  Figure figure(options, name + "." + op_name(op));
  uint64_t seed = options.seed;
  for (const int32_t dtype : {FMHC_BF16, FMHC_FP16, FMHC_FP32}) {
    for (const int32_t projection : {FMHC_CLASS_F2, FMHC_CLASS_F}) {
      if (projection == FMHC_CLASS_F2 && !projects(op)) continue;
      for (const int32_t norm : {FMHC_NORM_NONE, FMHC_NORM_ENGINE, FMHC_NORM_UNFUSED}) {
        if (norm != FMHC_NORM_NONE && !collapses(op)) continue;
        for (const int32_t carried : {0, 1}) {
          if (carried == 1 && !may_carry(op)) continue;
          int index = 0;
          for (const Shape& shape : bed.device.is_cuda() ? kShapes : kHostShapes) {
            if (bed.late()) {
              figure.fail("time", "not all cases ran");
              return figure.finish();
            }
            const bool odd = index++ % 2 == 1;
            CaseSpec spec;
            spec.problem = make_problem(op, shape.hidden, shape.tokens);
            spec.problem.residual_dtype = dtype;
            spec.problem.projection = projection;
            spec.problem.norm = norm;
            spec.problem.norm_weight_dtype = norm == FMHC_NORM_NONE ? 0 : odd ? FMHC_FP32 : FMHC_BF16;
            spec.problem.carried_pre = carried;
            spec.problem.pdl = odd ? 1 : 0;
            spec.problem.align_bytes = shape.hidden % 64 == 0 ? 16 : 0;
            spec.tokens = shape.tokens;
            spec.family = shape.family;
            spec.pre_mix = op != FMHC_CONTRACT && (carried == 1 || index > 1);
            spec.given_splits = static_cast<int32_t>(std::min<int64_t>(16, flat_of(spec.problem) / 64));
            spec.given_splits = std::max(spec.given_splits, 1);
            spec.seed = ++seed;
            bed.check(&figure, spec);
          }
        }
      }
    }
  }
  return figure.finish();
}

// The kernels whose grid waits for itself: every token count at which their geometry changes, and the
// cancelling streams that make the norm take its exact way.
Result resident_part(const Options& options) {
  if (options.device != FMHC_CUDA) return not_on_cpu(options, "smoke.resident");
  Bed bed(options);
  Figure figure(options, "smoke.resident");
  uint64_t seed = options.seed;
  for (const int32_t op : {FMHC_PRE, FMHC_SEAM}) {
    for (const int64_t hidden : {4096, 5120, 7168}) {
      for (const int64_t tokens : {1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64}) {
        for (const int32_t norm : {FMHC_NORM_NONE, FMHC_NORM_ENGINE, FMHC_NORM_UNFUSED}) {
          CaseSpec spec;
          spec.problem = make_problem(op, hidden, tokens);
          spec.problem.norm = norm;
          spec.problem.norm_weight_dtype = norm == FMHC_NORM_NONE ? 0
                                           : tokens % 2 == 1      ? FMHC_FP32
                                                                  : FMHC_BF16;
          spec.problem.coresident_units = bed.unit_choices().back();
          spec.problem.pdl = seed % 2 == 1 ? 1 : 0;
          spec.problem.align_bytes = 16;
          spec.tokens = tokens;
          spec.family = tokens % 3 == 0   ? Family::kPeaked
                        : tokens % 4 == 1 ? Family::kCancel
                                          : Family::kNormal;
          spec.pre_mix = tokens % 2 == 0;
          spec.seed = ++seed;
          bed.check(&figure, spec);
        }
      }
    }
  }
  return figure.finish();
}

template <int32_t kOp>
Result smoke_part(const Options& options) {
  return smoke_op(options, kOp, "smoke");
}

// The oracle itself, against the reference backend on the host.
Result oracle_part(const Options& options) {
  Options host = options;
  host.device = FMHC_CPU;
  host.kernel = "ref";
  host.strict = true;
  Result result = kNotRun;
  for (int32_t op = FMHC_EXPAND; op <= FMHC_CONTRACT; ++op) {
    result = merge(result, smoke_op(host, op, "oracle"));
  }
  return result;
}

const std::vector<Part> kParts = {
    {"oracle", 6, oracle_part},
    {"expand", 5, smoke_part<FMHC_EXPAND>},
    {"project", 5, smoke_part<FMHC_PROJECT>},
    {"finish", 5, smoke_part<FMHC_FINISH>},
    {"pre", 5, smoke_part<FMHC_PRE>},
    {"post", 5, smoke_part<FMHC_POST>},
    {"seam", 5, smoke_part<FMHC_SEAM>},
    {"head", 5, smoke_part<FMHC_HEAD>},
    {"contract", 5, smoke_part<FMHC_CONTRACT>},
    {"resident", 10, resident_part},
};

}  // namespace

Result run_smoke(const Options& options) {
  return run_command(options, "smoke", kParts, 20);
}

}  // namespace fmhc_gpu
