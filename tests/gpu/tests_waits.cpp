// What a kernel's state and waits must survive: other token counts with the same state, and a device that is
// held by others while the kernel runs.
#include <algorithm>

#include "adversary.h"
#include "tests.h"

namespace fmhc_gpu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// The first `tokens` tokens of `base`, with the same plan, state and scratch, and outputs of its own.
Prepared shorter(Arena* arena, const Prepared& base, int64_t tokens) {
  Prepared call = base;
  call.spec.tokens = tokens;
  for (int index = 0; index < kSlots; ++index) {
    const auto slot = static_cast<SlotId>(index);
    if (base.view[index].data == nullptr) continue;
    View view = shape_of(base.spec.problem, slot, {tokens, base.splits});
    view.data = slots()[static_cast<size_t>(index)].in != nullptr
                    ? base.view[index].data
                    : arena->take(static_cast<size_t>(view.count() * element_bytes(view.dtype)));
    call.view[index] = view;
    set_tensor(&call.args, slot, view);
  }
  return call;
}

// Modules that the library has loaded so far. After the plan is made it loads nothing more.
uint64_t loads_so_far() {
  fmhc_counters_t counters{};
  counters.struct_size = sizeof counters;
  return fmhc_counters(&counters) == FMHC_OK ? counters.module_loads + counters.late_loads : UINT64_MAX;
}

void tokens_case(Bed* bed, Arena* outputs, Figure* figure, const CaseSpec& spec, int64_t launches) {
  constexpr int64_t kCounts[] = {1, 2, 3, 5, 8, 9, 16, 17, 31, 32, 33, 48, 64, 65, 100, 256, 400};
  Prepared base;
  if (!bed->ready(figure, &bed->arena, spec, &base)) return;
  outputs->reset();
  std::vector<Prepared> calls;
  for (const int64_t count : kCounts) {
    if (count <= spec.tokens) calls.push_back(shorter(outputs, base, count));
  }
  outputs->poison();
  const uint64_t loads = loads_so_far();
  SumLog sums(bed->device, launches + static_cast<int64_t>(calls.size()));
  std::vector<size_t> order;
  for (size_t i = 0; i < calls.size(); ++i)
    order.push_back(i);  // the first of each is what the others must equal
  for (int64_t i = 0; i < launches; ++i)
    order.push_back(mix64(spec.seed + static_cast<uint64_t>(i)) % calls.size());
  for (const size_t which : order) {
    poison_outputs(bed->device, calls[which]);
    if (!bed->launch(figure, calls[which])) return;
    sum_outputs(bed->device, calls[which], sums.next());
  }
  const std::vector<uint64_t> read = sums.read();
  if (loads_so_far() == loads) {
    figure->pass();
  } else {
    figure->fail(base.kernel + ": " + describe(spec), "a module was loaded after the plan was made");
  }
  for (size_t i = calls.size(); i < order.size(); ++i) {
    if (read[i] == read[order[i]]) {
      figure->pass();
    } else {
      figure->fail(
          std::string(fmhc_plan_kernel(&base.plan, calls[order[i]].spec.tokens)) + ": " + describe(spec),
          "T=" + std::to_string(calls[order[i]].spec.tokens) + ", launch " + std::to_string(i) +
              ", gave other bits than the first launch of this count");
    }
  }
}

}  // namespace

// One plan, one state, token counts in random order.
Result test_tokens(const Options& options) {
  Bed bed(options, 256 * kMiB);
  Arena outputs(bed.device, bed.device.is_cuda() ? 512 * kMiB : 32 * kMiB);
  Figure figure(options, "changing token counts");
  uint64_t seed = options.seed;
  for (const int32_t op : {FMHC_PRE, FMHC_SEAM, FMHC_HEAD, FMHC_POST, FMHC_CONTRACT, FMHC_EXPAND}) {
    for (const int64_t hidden : {int64_t{4096}, int64_t{7168}}) {
      for (const int32_t units : bed.unit_choices()) {
        for (const int32_t pdl : {0, 1}) {
          if (bed.late()) {
            figure.fail("time", "not all cases ran");
            return figure.finish();
          }
          const bool cuda = bed.device.is_cuda();
          CaseSpec spec = make_case(op, cuda ? hidden : hidden / 64, cuda ? 400 : 9, ++seed);
          spec.problem.coresident_units = units;
          spec.problem.pdl = pdl;
          tokens_case(&bed, &outputs, &figure, spec, cuda ? 400 : 20);
        }
      }
    }
  }
  return figure.finish();
}

// The first call of a plan is a launch like any other: no kernel is loaded, nothing is allocated. Loading one
// takes several hundred microseconds of the calling thread.
Result test_first(const Options& options) {
  if (options.device != FMHC_CUDA) return not_on_cpu(options, "first calls");
  constexpr double kMostUs = 300;
  Bed bed(options, 256 * kMiB);
  Figure figure(options, "first calls");
  double slowest = 0;
  uint64_t seed = options.seed;
  for (const int32_t op : kAllOps) {
    for (const int32_t dtype : {FMHC_BF16, FMHC_FP16, FMHC_FP32}) {
      for (const int64_t tokens :
           {int64_t{1}, int64_t{6}, int64_t{30}, int64_t{64}, int64_t{100}, int64_t{1000}}) {
        for (const int32_t units : bed.unit_choices()) {
          CaseSpec spec = make_case(op, tokens == 6 ? 7168 : 4096, tokens, ++seed);
          spec.problem.residual_dtype = dtype;
          spec.problem.coresident_units = units;
          spec.problem.pdl = seed % 4 < 2;
          Prepared call;
          if (!bed.ready(&figure, &bed.arena, spec, &call)) continue;
          size_t before = 0;
          size_t after = 0;
          size_t total = 0;
          FMHC_CUDA(cudaMemGetInfo(&before, &total));
          const Clock clock;
          if (!bed.launch(&figure, call)) continue;
          const double us = clock.seconds() * 1e6;
          bed.device.wait();
          FMHC_CUDA(cudaMemGetInfo(&after, &total));
          slowest = std::max(slowest, us);
          if (us <= kMostUs && after == before) {
            figure.pass();
          } else {
            figure.fail(call.kernel + ": " + describe(spec),
                        "the first call took " + std::to_string(us) + " us and " +
                            std::to_string(static_cast<int64_t>(before) - static_cast<int64_t>(after)) +
                            " bytes of the device");
          }
        }
      }
    }
  }
  figure.note("slowest us", std::to_string(slowest));
  return figure.finish();
}

// Another stream holds most of the multiprocessors, for less and for more time than a call takes.
Result test_busy(const Options& options) {
  if (options.device != FMHC_CUDA) return not_on_cpu(options, "a busy device");
  Bed bed(options, 512 * kMiB);
  Device other(options.device);
  Figure figure(options, "a busy device");
  uint64_t seed = options.seed;
  for (const int32_t op : kAllOps) {
    for (const int64_t tokens : {int64_t{1}, int64_t{40}, int64_t{300}, int64_t{3000}}) {
      for (const int32_t units : bed.unit_choices()) {
        CaseSpec spec = make_case(op, 4096, tokens, ++seed);
        spec.problem.coresident_units = units;
        spec.problem.pdl = seed % 4 < 2;
        Prepared call;
        if (!bed.ready(&figure, &bed.arena, spec, &call) || !bed.launch(&figure, call)) continue;
        constexpr int64_t kRounds = 10;
        SumLog sums(bed.device, kRounds + 1);
        sum_outputs(bed.device, call, sums.next());
        bed.device.wait();
        for (int64_t round = 0; round < kRounds; ++round) {
          const int held = round % 2 == 0 ? 100 : 131;
          poison_outputs(bed.device, call);
          launch_busy(other.stream(), 300000, held);
          if (!bed.launch(&figure, call)) break;
          launch_busy(other.stream(), 20000, held);
          sum_outputs(bed.device, call, sums.next());
        }
        const std::vector<uint64_t> read = sums.read();
        other.wait();
        const int64_t unequal = sums.count_unequal(read.front());
        if (unequal == 0) {
          figure.pass(kRounds);
        } else {
          figure.fail(call.kernel + ": " + describe(spec), std::to_string(unequal) + " runs gave other bits");
        }
      }
    }
  }
  return figure.finish();
}

}  // namespace fmhc_gpu
