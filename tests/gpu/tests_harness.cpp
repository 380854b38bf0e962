// The harness itself: faults planted by hand must be seen, or nothing that passes elsewhere means anything.
#include "adversary.h"
#include "tests.h"

namespace fmhc_gpu {
namespace {

void expect(Figure* figure, bool seen, const char* what) {
  if (seen) {
    figure->pass();
  } else {
    figure->fail("harness", std::string("does not see ") + what);
  }
}

// Overwrites one element of a view by the bytes of another, `shift` bytes off the element's own place.
void overwrite(Device* device, const View& view, int64_t index, const void* bytes, int64_t shift) {
  auto* place = static_cast<char*>(view.data) + view.offset(index) * element_bytes(view.dtype) + shift;
  device->copy_in(place, bytes, static_cast<size_t>(element_bytes(view.dtype)));
}

void planted_in_outputs(Bed* bed, Figure* figure) {
  constexpr uint16_t kNan = 0x7fff;
  for (const int32_t op : {FMHC_PRE, FMHC_POST, FMHC_SEAM, FMHC_HEAD, FMHC_EXPAND}) {
    const CaseSpec spec = make_case(op, 256, 5, 7);
    Prepared call;
    if (!bed->ready(figure, &bed->arena, spec, &call) || !bed->launch(figure, call)) continue;
    const Bounds bounds = bounds_for(spec, false);
    expect(figure, bed->judge.compare(call, bounds).ok(), "that a right result is right");
    const View& wide = call.view[call.view[kLayerInput].data != nullptr ? kLayerInput : kResidualOut];
    uint16_t held = 0;
    bed->device.copy_out(&held, static_cast<char*>(wide.data) + wide.offset(300) * 2, sizeof held);
    const auto next = static_cast<uint16_t>(held + 2);  // the next but one value of the format
    overwrite(&bed->device, wide, 300, &next, 0);
    expect(figure, !bed->judge.compare(call, bounds).ok(),
           "an output that is off by two units in the last place");
    overwrite(&bed->device, wide, 300, &kNan, 0);
    expect(figure, !bed->judge.compare(call, bounds).ok(), "a NaN");
    overwrite(&bed->device, wide, 300, &held, 0);
    expect(figure, bed->judge.compare_and_guard(bed->arena, call, bounds).ok(),
           "that nothing else was written");
  }
}

void planted_beside_outputs(Bed* bed, Figure* figure) {
  CaseSpec spec = make_case(FMHC_PRE, 256, 5, 8);
  spec.row_pad = 8;
  spec.problem.strided = 1;
  for (const bool between : {true, false}) {
    Prepared call;
    if (!bed->ready(figure, &bed->arena, spec, &call) || !bed->launch(figure, call)) return;
    const View& wide = call.view[kLayerInput];
    const uint16_t zero = 0;
    // Behind the first row, in the padding; behind the last row, in the guard zone.
    overwrite(&bed->device, wide, between ? 255 : wide.count() - 1, &zero, 2);
    expect(figure, !bed->judge.compare_and_guard(bed->arena, call, bounds_for(spec, false)).ok(),
           between ? "a write between two rows" : "a write behind the last row");
  }
  Prepared call;
  if (!bed->ready(figure, &bed->arena, spec, &call) || !bed->launch(figure, call)) return;
  const uint32_t one = 1;
  overwrite(&bed->device, call.view[kFn], 0, &one, 0);
  expect(figure, !bed->judge.compare_and_guard(bed->arena, call, bounds_for(spec, false)).ok(),
         "a changed weight");
}

void planted_bits(Bed* bed, Figure* figure) {
  const CaseSpec spec = make_case(FMHC_POST, 256, 3, 9);
  Prepared call;
  if (!bed->ready(figure, &bed->arena, spec, &call) || !bed->launch(figure, call)) return;
  SumLog sums(bed->device, 2);
  sum_outputs(bed->device, call, sums.next());
  uint16_t held = 0;
  const View& out = call.view[kResidualOut];
  bed->device.copy_out(&held, out.data, sizeof held);
  held = static_cast<uint16_t>(held ^ 1);
  overwrite(&bed->device, out, 0, &held, 0);
  sum_outputs(bed->device, call, sums.next());
  const std::vector<uint64_t> read = sums.read();
  expect(figure, read[0] != read[1], "one flipped bit");
}

// A kernel that starts early and does not wait, between the late writer and the early reader.
void planted_haste(Bed* bed, Figure* figure) {
  constexpr int64_t kBytes = 4096;
  constexpr int kTries = 5;
  Arena arena(bed->device, size_t{1} << 20);
  char* source = arena.take(kBytes);
  char* input = arena.take(kBytes);
  char* output = arena.take(kBytes);
  char* result = arena.take(kBytes);
  arena.poison();
  bed->device.fill_bytes(source, 0x11, kBytes);
  const auto list = [&](char* to, char* from) {
    CopyList copies;
    copies.add(to, from, kBytes);
    return copies;
  };
  int hasty = 0;
  int patient = 0;
  for (int i = 0; i < 2 * kTries; ++i) {
    const bool wait = i % 2 == 1;
    for (char* place : {input, output, result}) bed->device.fill_bytes(place, 0xff, kBytes);
    launch_late_writer(bed->device.stream(), list(input, source), 100000);
    launch_copy(bed->device.stream(), list(output, input), wait);
    launch_early_reader(bed->device.stream(), list(result, output), list(input, nullptr));
    unsigned char first = 0;
    bed->device.copy_out(&first, result, 1);
    (wait ? patient : hasty) += first == (wait ? 0x11 : 0xff);
  }
  expect(figure, patient == kTries, "that a kernel which waits reads what was written");
  expect(figure, hasty > 0, "a kernel that does not wait for its predecessor");
}

}  // namespace

Result test_harness(const Options& options) {
  Bed bed(options, size_t{256} << 20);
  Figure figure(options, "planted faults");
  planted_in_outputs(&bed, &figure);
  planted_beside_outputs(&bed, &figure);
  planted_bits(&bed, &figure);
  if (bed.device.is_cuda()) planted_haste(&bed, &figure);
  return figure.finish();
}

}  // namespace fmhc_gpu
