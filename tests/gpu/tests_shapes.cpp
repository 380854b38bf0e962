// Results against the oracle: random calls, edges of the launch geometry, more than 2^31 elements, views.
#include <algorithm>

#include "tests.h"

namespace fmhc_gpu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

bool is_cuda(const Options& options) {
  return options.device == FMHC_CUDA;
}

}  // namespace

Bed::Bed(const Options& options_in, size_t arena_bytes, size_t work_bytes)
    : options(options_in),
      device(options_in.device),
      arena(device, is_cuda(options_in) ? arena_bytes : std::min(arena_bytes, 64 * kMiB)),
      judge(device, is_cuda(options_in) ? work_bytes : std::min(work_bytes, 32 * kMiB)) {}

bool Bed::ready(Figure* figure, Arena* own_arena, const CaseSpec& spec, Prepared* call) {
  CaseSpec wanted = spec;
  if (wanted.kernel.empty()) wanted.kernel = options.kernel;
  switch (prepare(device, *own_arena, wanted, call)) {
    case Ready::kYes:
      return true;
    case Ready::kAbsent:
      figure->absent(std::string(op_name(spec.problem.op)) + " " + dtype_name(spec.problem.residual_dtype) +
                     " " + class_name(spec.problem.projection) + ": " + call->reason);
      return false;
    case Ready::kTooLarge:
      figure->count("skipped: larger than the arena");
      return false;
    case Ready::kRefused:
      figure->fail(describe(spec), "refused: " + call->reason);
      return false;
  }
  return false;
}

std::vector<int32_t> Bed::unit_choices() const {
  if (!device.is_cuda()) return {0};
  return {0, device.target().num_units};
}

bool Bed::launch(Figure* figure, const Prepared& call) {
  fmhc_diag diag{};
  if (run(device, call, &diag) == FMHC_OK) return true;
  figure->fail(call.kernel + ": " + describe(call.spec), diag.text);
  return false;
}

void Bed::check(Figure* figure, const CaseSpec& spec) {
  Prepared call;
  if (!ready(figure, &arena, spec, &call) || !launch(figure, call)) return;
  device.wait();
  figure->count(std::string(op_name(spec.problem.op)) + "." + dtype_name(spec.problem.residual_dtype));
  figure->count(call.kernel);
  const Outcome outcome = judge.compare_and_guard(arena, call, bounds_for(spec, options.strict));
  figure->add(spec, call.kernel, outcome);
  if (spec.tokens == 0 && outcome.ok()) figure->pass();  // nothing was touched
}

Result not_on_cpu(const Options& options, const char* name) {
  Figure figure(options, name);
  figure.note("not run", "needs a CUDA device");
  return figure.finish();
}

Result test_fuzz(const Options& options) {
  Bed bed(options);
  Figure figure(options, "random shapes");
  const int32_t units = bed.device.target().num_units;
  const bool cuda = bed.device.is_cuda();
  int64_t ran = 0;
  int64_t index = options.only >= 0 ? options.only : 0;
  const int64_t end = options.only >= 0 ? options.only + 1 : options.cases;
  for (; index < end && !bed.late() && figure.failures() < 50; ++index, ++ran) {
    const CaseSpec spec = random_case(options.seed, index, cuda, cuda ? units : 0);
    const int64_t before = figure.failures();
    bed.check(&figure, spec);
    if (figure.failures() > before) {
      std::printf("       again: flashmhc_gpu test --part fuzz --seed %llu --case %lld\n",
                  static_cast<unsigned long long>(options.seed), static_cast<long long>(index));
    }
  }
  figure.note("cases", std::to_string(ran) + " of " + std::to_string(options.only >= 0 ? 1 : options.cases));
  if (options.only < 0 && ran < options.cases) figure.fail("time", "not all cases ran");
  return figure.finish();
}

Result test_edges(const Options& options) {
  Bed bed(options);
  Figure figure(options, "token counts at grid limits");
  uint64_t seed = options.seed;
  for (const int64_t tokens : {int64_t{65535}, int64_t{65536}, int64_t{65537}, int64_t{131073}}) {
    for (const int32_t op : kAllOps) {
      for (const int64_t hidden : {int64_t{8}, int64_t{24}}) {
        if (bed.late()) {
          figure.fail("time", "not all cases ran");
          return figure.finish();
        }
        if (bed.device.is_cuda() || hidden == 8) {
          bed.check(&figure, make_case(op, hidden, bed.device.is_cuda() ? tokens : tokens / 64, ++seed));
        }
      }
    }
  }
  return figure.finish();
}

Result test_large(const Options& options) {
  if (!is_cuda(options)) return not_on_cpu(options, "more than 2^31 elements");
  Bed bed(options, size_t{24} << 30);
  Figure figure(options, "more than 2^31 elements");
  struct Size {
    int64_t tokens, hidden;
  };
  uint64_t seed = options.seed;
  for (const Size size : {Size{74908, 7168}, Size{131080, 4096}}) {
    for (const int32_t op : kAllOps) {
      if (bed.late()) {
        figure.fail("time", "not all cases ran");
        return figure.finish();
      }
      CaseSpec spec = make_case(op, size.hidden, size.tokens, ++seed);
      spec.in_place = op == FMHC_POST && size.hidden == 4096;
      bed.check(&figure, spec);
    }
  }
  return figure.finish();
}

Result test_views(const Options& options) {
  Bed bed(options);
  Figure figure(options, "misaligned and strided views");
  uint64_t seed = options.seed;
  for (const int32_t op : kAllOps) {
    for (const int32_t dtype : {FMHC_BF16, FMHC_FP32}) {
      const int64_t element = element_bytes(dtype);
      for (const int64_t hidden : {int64_t{256}, int64_t{257}, int64_t{320}}) {
        for (int variant = 0; variant < 12; ++variant) {
          if (bed.late()) {
            figure.fail("time", "not all cases ran");
            return figure.finish();
          }
          CaseSpec spec = make_case(op, hidden, 3 + variant, ++seed);
          spec.problem.residual_dtype = dtype;
          spec.problem.align_bytes = 0;
          spec.shift = variant < 8 ? variant * element : 0;  // 2 .. 14 bytes off
          spec.row_pad = variant == 8 ? 1 : variant == 9 ? 8 : variant == 10 ? 64 : variant == 7 ? 3 : 0;
          spec.broadcast = variant == 11 && op != FMHC_EXPAND;
          spec.problem.strided = spec.row_pad > 0 || spec.broadcast;
          spec.in_place = (op == FMHC_POST || op == FMHC_SEAM) && variant % 3 == 1;
          bed.check(&figure, spec);
        }
      }
    }
  }
  return figure.finish();
}

}  // namespace fmhc_gpu
