#include <algorithm>
#include <cstdio>

#include "fill.cuh"
#include "fill.h"
#include "timing.h"

namespace fmhc_gpu {
namespace {

constexpr size_t kGuard = 1024;
constexpr size_t kAlign = 256;

bool wants(const CaseSpec& spec, SlotId slot) {
  if (!takes(spec.problem, slot)) return false;
  return slot != kPreMix || spec.problem.carried_pre != 0 || spec.pre_mix;
}

// Bytes from the first to the last element, and the strides with the padding of a strided case.
size_t pad_rows(const CaseSpec& spec, SlotId slot, View* view) {
  const bool wide = slots()[slot].wide;
  if (spec.row_pad > 0 && (wide || slot == kDotMix || slot == kPostMix || slot == kPostIn)) {
    int64_t step = view->stride[view->rank - 1] * view->shape[view->rank - 1] + (wide ? spec.row_pad : 3);
    for (int axis = view->rank - 2; axis >= 0; --axis) {
      view->stride[axis] = step;
      step = step * view->shape[axis] + (wide ? spec.row_pad : 5);
    }
  }
  if (spec.broadcast && slot == kResidual && view->rank == 3) {
    view->stride[0] = view->stride[1];
    view->stride[1] = 0;
  }
  int64_t last = 0;
  for (int axis = 0; axis < view->rank; ++axis) {
    if (view->shape[axis] == 0) return 0;
    last += view->stride[axis] * (view->shape[axis] - 1);
  }
  return static_cast<size_t>(last + 1) * static_cast<size_t>(element_bytes(view->dtype));
}

FillSlot filler(const Prepared& call, SlotId slot, const View& view) {
  View target = view;
  if (call.spec.broadcast && slot == kResidual && target.rank == 3) target.shape[1] = 1;
  const fmhc_problem& problem = call.spec.problem;
  return {
      target,           slot,           call.spec.family, call.spec.seed * 31 + static_cast<uint64_t>(slot),
      flat_of(problem), problem.hidden, call.splits};
}

void fill_inputs(Device& device, const Prepared& call) {
  for (int index = 0; index < kSlots; ++index) {
    const auto slot = static_cast<SlotId>(index);
    if (slots()[index].in == nullptr || call.view[index].data == nullptr) continue;
    const FillSlot fill = filler(call, slot, call.view[index]);
    for_each(device, fill.view.count(), fill);
  }
  if (call.before.data != nullptr) {
    const FillSlot fill = filler(call, kResidual, call.before);
    for_each(device, fill.view.count(), fill);
  }
}

}  // namespace

Arena::Arena(Device& device, size_t capacity)
    : device_(device),
      base_(static_cast<char*>(device.allocate(capacity))),
      capacity_(capacity),
      sum_(static_cast<uint64_t*>(device.allocate(sizeof(uint64_t)))) {}

Arena::~Arena() {
  device_.release(base_);
  device_.release(sum_);
}

bool Arena::fits(size_t bytes) const {
  return bytes < capacity_ && used_ + bytes + 3 * kGuard < capacity_;
}

char* Arena::take(size_t bytes, size_t shift) {
  if (!fits(bytes + shift)) die("Arena::take", "the case is larger than the arena");
  char* place = base_ + used_ + kGuard + shift;
  used_ += (kGuard + shift + bytes + kGuard + kAlign - 1) / kAlign * kAlign;
  return place;
}

void Arena::poison() {
  device_.fill_bytes(base_, 0xff, used_);
}

uint64_t Arena::checksum() {
  return checksum_of(device_, base_, used_, sum_);
}

Ready prepare(Device& device, Arena& arena, const CaseSpec& spec, Prepared* out) {
  arena.reset();
  Prepared& call = *out;
  call = Prepared{};
  call.spec = spec;
  fmhc_diag diag{};
  fmhc_hints hints{};
  hints.struct_size = sizeof hints;
  hints.kernel = spec.kernel.empty() ? nullptr : spec.kernel.c_str();
  hints.split_k = spec.split_k;
  const int32_t code = fmhc_plan_make(&spec.problem, &device.target(), &hints, &call.plan, &diag);
  if (code != FMHC_OK) {
    call.reason = diag.text;
    // A prefix that names no kernel is a kernel that is not built yet.
    return code == FMHC_UNSUPPORTED || (code == FMHC_INVALID && hints.kernel != nullptr) ? Ready::kAbsent
                                                                                         : Ready::kRefused;
  }
  const char* kernel = fmhc_plan_kernel(&call.plan, spec.tokens);
  call.kernel = kernel == nullptr ? "" : kernel;
  call.splits =
      spec.problem.op == FMHC_FINISH ? spec.given_splits : fmhc_plan_split_k(&call.plan, spec.tokens);
  call.args.struct_size = sizeof call.args;
  call.args.stream = device.stream_handle();
  call.packed_bytes = fmhc_plan_packed(&call.plan);
  call.args.scratch_bytes = fmhc_plan_scratch(&call.plan);
  call.args.state_bytes = fmhc_plan_state(&call.plan);

  const auto take = [&](size_t bytes, size_t shift) -> char* {
    if (call.reason.empty() && !arena.fits(bytes + shift)) call.reason = "larger than the arena";
    return call.reason.empty() ? arena.take(bytes, shift) : nullptr;
  };
  for (int index = 0; index < kSlots; ++index) {
    const auto slot = static_cast<SlotId>(index);
    if (!wants(spec, slot)) continue;
    View view = shape_of(spec.problem, slot, {spec.tokens, call.splits});
    const size_t bytes = pad_rows(spec, slot, &view);
    const bool reuse = spec.in_place && slot == kResidualOut;
    view.data = reuse ? call.view[kResidual].data
                      : take(bytes, slots()[index].wide ? static_cast<size_t>(spec.shift) : 0);
    if (reuse) {
      call.before = call.view[kResidual];
      call.before.data = take(bytes, 0);
    }
    call.view[index] = view;
    set_tensor(&call.args, slot, view);
  }
  if (call.args.scratch_bytes > 0) call.args.scratch = take(call.args.scratch_bytes, 0);
  if (call.args.state_bytes > 0) call.args.state = take(call.args.state_bytes, 0);
  if (call.packed_bytes > 0) call.packed = take(call.packed_bytes, 0);
  if (!call.reason.empty()) return Ready::kTooLarge;

  arena.poison();
  fill_inputs(device, call);
  call.clean = arena.checksum();
  if (call.packed_bytes > 0) {
    const fmhc_in fn = call.args.fn;
    if (fmhc_prepare(&call.plan, &fn, call.packed, call.packed_bytes, device.stream_handle(), &diag) !=
        FMHC_OK) {
      call.reason = diag.text;
      return Ready::kRefused;
    }
    call.args.fn_packed = {
        call.packed, {static_cast<int64_t>(call.packed_bytes), 0, 0, 0}, {1, 0, 0, 0}, 1, 0};
  }
  if (call.args.state_bytes > 0 && fmhc_state_init(&call.plan, call.args.state, call.args.state_bytes,
                                                   device.stream_handle(), &diag) != FMHC_OK) {
    call.reason = diag.text;
    return Ready::kRefused;
  }
  device.wait();
  return Ready::kYes;
}

void poison_outputs(Device& device, const Prepared& call) {
  for (int index = kResidualOut; index < kSlots; ++index) {
    if (call.view[index].data == nullptr) continue;
    if (index == kResidualOut && call.spec.in_place) {
      const FillSlot fill = filler(call, kResidual, call.view[kResidual]);
      for_each(device, fill.view.count(), fill);
      continue;
    }
    for_each(device, call.view[index].count(), PoisonView{call.view[index]});
  }
  device.fill_bytes(call.args.scratch, 0xff, call.args.scratch_bytes);
}

int32_t run(Device&, const Prepared& call, fmhc_diag* diag) {
  return fmhc_run(&call.plan, &call.args, diag);
}

void fill_pool(Device& device, SlotId slot, int32_t dtype, void* data, size_t bytes, int64_t flat,
               int64_t splits) {
  const int64_t count = static_cast<int64_t>(bytes) / element_bytes(dtype);
  const View view{data, {count, 0, 0, 0}, {1, 0, 0, 0}, 1, dtype};
  for_each(device, count,
           FillSlot{view, slot, Family::kNormal, 1000 + static_cast<uint64_t>(slot), flat, flat / 4, splits});
}

Judge::Judge(Device& device_in, size_t bytes)
    : device(device_in),
      work(static_cast<char*>(device_in.allocate(bytes))),
      work_bytes(bytes),
      tallies(static_cast<Tally*>(device_in.allocate(16 * sizeof(Tally)))) {}

Judge::~Judge() {
  device.release(work);
  device.release(tallies);
}

}  // namespace fmhc_gpu
