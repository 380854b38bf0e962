// Bits: a token alone and in a batch, run to run, beside NaN, on several streams.
#include <algorithm>

#include "tests.h"
#include "timing.h"

namespace fmhc_gpu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Every output of token `token` of `batch` against that of `one`.
int64_t rows_differ(Device& device, const Prepared& batch, const Prepared& one, int64_t token,
                    std::string* where) {
  int64_t total = 0;
  for (int index = kResidualOut; index < kSlots; ++index) {
    const auto slot = static_cast<SlotId>(index);
    if (batch.view[index].data == nullptr) continue;
    const int64_t count = differing(device, token_view(slot, batch.view[index], token), one.view[index]);
    if (count > 0) *where += std::string(" ") + slots()[slot].name + " (" + std::to_string(count) + ")";
    total += count;
  }
  return total;
}

std::vector<int64_t> positions(int64_t tokens) {
  std::vector<int64_t> places = {0, tokens / 3, tokens / 2, tokens - 1, std::min<int64_t>(tokens - 1, 8)};
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

void invariance_case(Bed* bed, Arena* arena_one, Figure* figure, const CaseSpec& spec) {
  Prepared batch;
  if (!bed->ready(figure, &bed->arena, spec, &batch) || !bed->launch(figure, batch)) return;
  for (const int64_t token : positions(spec.tokens)) {
    arena_one->reset();
    const Prepared one = single_token(*arena_one, batch, token);
    arena_one->poison();
    if (!bed->launch(figure, one)) return;
    std::string where;
    if (rows_differ(bed->device, batch, one, token, &where) == 0) {
      figure->pass();
    } else {
      figure->fail(batch.kernel + " and " + fmhc_plan_kernel(&batch.plan, 1) + ": " + describe(spec),
                   "token " + std::to_string(token) + " alone gives other bits:" + where);
    }
  }
}

}  // namespace

Result test_invariant(const Options& options) {
  Bed bed(options, 2048 * kMiB);
  Arena arena_one(bed.device, 64 * kMiB);
  Figure figure(options, "batch invariance");
  constexpr int64_t kTokens[] = {1,  2,  3,   7,   8,   9,   15,  16,  17,   31,   32,   33,   63,  64,
                                 65, 96, 127, 128, 129, 256, 257, 511, 1023, 1024, 1025, 2049, 4097};
  uint64_t seed = options.seed;
  for (const int64_t hidden : {int64_t{4096}, int64_t{7168}, int64_t{320}}) {
    for (const int32_t op : {FMHC_PRE, FMHC_SEAM, FMHC_HEAD, FMHC_POST, FMHC_PROJECT, FMHC_FINISH}) {
      for (const int64_t tokens : kTokens) {
        if (!bed.device.is_cuda() && (hidden != 320 || tokens > 33)) continue;
        if (bed.late()) {
          figure.fail("time", "not all cases ran");
          return figure.finish();
        }
        CaseSpec spec = make_case(op, hidden, tokens, ++seed);
        spec.problem.batch_invariant = 1;
        spec.problem.max_tokens = 8192;
        spec.problem.strided = op == FMHC_FINISH;  // one token of the partials is a strided view
        spec.problem.projection = projects(op) && seed % 2 == 0 ? FMHC_CLASS_F : spec.problem.projection;
        spec.problem.pdl = seed % 3 == 0;
        spec.problem.coresident_units = seed % 5 < 2 ? bed.unit_choices().back() : 0;
        spec.pre_mix = true;
        invariance_case(&bed, &arena_one, &figure, spec);
      }
    }
  }
  return figure.finish();
}

// One token turns into NaN or Inf: all others keep their bits.
Result test_isolation(const Options& options) {
  Bed bed(options);
  Arena arena_other(bed.device, bed.device.is_cuda() ? 1024 * kMiB : 64 * kMiB);
  Figure figure(options, "row isolation");
  uint64_t seed = options.seed;
  for (const int32_t op : kAllOps) {
    for (const int64_t tokens : {int64_t{2}, int64_t{17}, int64_t{33}, int64_t{64}, int64_t{130}}) {
      for (const int64_t hidden : {int64_t{256}, int64_t{4096}}) {
        if (bed.late() || (!bed.device.is_cuda() && (hidden > 256 || tokens > 33))) continue;
        CaseSpec spec = make_case(op, hidden, tokens, ++seed);
        spec.problem.coresident_units = seed % 2 == 0 ? bed.unit_choices().back() : 0;
        Prepared clean;
        Prepared dirty;
        if (!bed.ready(&figure, &bed.arena, spec, &clean) || !bed.ready(&figure, &arena_other, spec, &dirty))
          continue;
        const int64_t bad = static_cast<int64_t>(seed % static_cast<uint64_t>(tokens));
        for (const SlotId slot : {kResidual, kSublayerOutput, kPostIn, kCombIn, kDotMixIn, kSqrsumIn}) {
          if (dirty.view[slot].data != nullptr) fill_nan(bed.device, token_view(slot, dirty.view[slot], bad));
        }
        if (!bed.launch(&figure, clean) || !bed.launch(&figure, dirty)) continue;
        for (int64_t token = 0; token < tokens; ++token) {
          if (token == bad) continue;
          int64_t differ = 0;
          for (int index = kResidualOut; index < kSlots; ++index) {
            const auto slot = static_cast<SlotId>(index);
            if (clean.view[index].data == nullptr) continue;
            differ += differing(bed.device, token_view(slot, dirty.view[index], token),
                                token_view(slot, clean.view[index], token));
          }
          if (differ == 0) {
            figure.pass();
          } else {
            figure.fail(clean.kernel + ": " + describe(spec),
                        "NaN in token " + std::to_string(bad) + " changed token " + std::to_string(token));
          }
          if (tokens > 20) token += tokens / 8;
        }
      }
    }
  }
  if (bed.late()) figure.fail("time", "not all cases ran");
  return figure.finish();
}

namespace {

// The same call `repeats` times while other streams are busy.
void repeat_case(Bed* bed, Figure* figure, const CaseSpec& spec, int64_t repeats,
                 const std::vector<std::unique_ptr<Device>>& busy, float* sink) {
  Prepared call;
  if (!bed->ready(figure, &bed->arena, spec, &call)) return;
  SumLog sums(bed->device, repeats);
  for (int64_t i = 0; i < repeats; ++i) {
    for (const auto& other : busy) launch_foreign(*other, sink);
    poison_outputs(bed->device, call);
    if (!bed->launch(figure, call)) return;
    sum_outputs(bed->device, call, sums.next());
  }
  const std::vector<uint64_t> read = sums.read();
  const int64_t unequal = sums.count_unequal(read.front());
  if (unequal == 0) {
    figure->pass(repeats);
  } else {
    figure->fail(call.kernel + ": " + describe(spec),
                 std::to_string(unequal) + " of " + std::to_string(repeats) + " runs gave other bits");
  }
}

}  // namespace

Result test_repeat(const Options& options) {
  Bed bed(options);
  const bool cuda = bed.device.is_cuda();
  Figure figure(options, "run to run");
  std::vector<std::unique_ptr<Device>> busy;
  for (int i = 0; cuda && i < 3; ++i) busy.push_back(std::make_unique<Device>(options.device));
  auto* sink = static_cast<float*>(bed.device.allocate(256));
  uint64_t seed = options.seed;
  for (const int32_t op : kAllOps) {
    for (const int64_t tokens : {int64_t{1}, int64_t{33}, int64_t{64}, int64_t{200}, int64_t{700}}) {
      for (const int64_t hidden : {int64_t{4096}, int64_t{7168}}) {
        for (const int32_t units : bed.unit_choices()) {
          if (bed.late()) {
            figure.fail("time", "not all cases ran");
            return figure.finish();
          }
          CaseSpec spec = make_case(op, cuda ? hidden : hidden / 64, cuda ? tokens : tokens % 10, ++seed);
          spec.problem.pdl = seed % 4 < 2;
          spec.problem.coresident_units = units;
          repeat_case(&bed, &figure, spec, cuda ? 200 : 5, busy, sink);
        }
      }
    }
  }
  return figure.finish();
}

// Several streams at once, each with memory of its own, against the same calls one after another.
Result test_streams(const Options& options) {
  constexpr int kStreams = 8;
  const bool cuda = options.device == FMHC_CUDA;
  const int64_t rounds = cuda ? 100 : 3;
  Figure figure(options, "streams at once");
  struct Lane {
    explicit Lane(const Options& options_in) : bed(options_in, size_t{96} << 20, size_t{16} << 20) {}
    Bed bed;
    Prepared call;
  };
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int i = 0; i < kStreams; ++i) lanes.push_back(std::make_unique<Lane>(options));
  uint64_t seed = options.seed;
  for (int mix = 0; mix < 6; ++mix) {
    std::vector<Lane*> active;
    for (size_t i = 0; i < lanes.size(); ++i) {
      Lane& lane = *lanes[i];
      const int32_t op = kAllOps[(i + static_cast<size_t>(mix)) % std::size(kAllOps)];
      ++seed;
      const int64_t tokens = cuda ? 1 + static_cast<int64_t>(seed * 37 % 150) : 5;
      CaseSpec spec = make_case(op, cuda ? (mix % 2 == 0 ? 4096 : 1280) : 64, tokens, seed);
      spec.problem.pdl = mix % 2;
      spec.problem.coresident_units = mix % 3 == 0 ? lane.bed.unit_choices().back() : 0;
      if (lane.bed.ready(&figure, &lane.bed.arena, spec, &lane.call)) active.push_back(&lane);
    }
    std::vector<std::unique_ptr<SumLog>> logs;
    for (Lane* lane : active) {  // alone first
      logs.push_back(std::make_unique<SumLog>(lane->bed.device, rounds + 1));
      if (!lane->bed.launch(&figure, lane->call)) return figure.finish();
      sum_outputs(lane->bed.device, lane->call, logs.back()->next());
      lane->bed.device.wait();
    }
    for (int64_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < active.size(); ++i) {
        poison_outputs(active[i]->bed.device, active[i]->call);
        if (!active[i]->bed.launch(&figure, active[i]->call)) return figure.finish();
        sum_outputs(active[i]->bed.device, active[i]->call, logs[i]->next());
      }
    }
    for (size_t i = 0; i < active.size(); ++i) {
      const std::vector<uint64_t> sums = logs[i]->read();
      const int64_t unequal = logs[i]->count_unequal(sums.front());
      if (unequal == 0) {
        figure.pass(rounds);
      } else {
        figure.fail(active[i]->call.kernel + ": " + describe(active[i]->call.spec),
                    std::to_string(unequal) + " runs differ from the run alone");
      }
    }
  }
  return figure.finish();
}

}  // namespace fmhc_gpu
