#include "bits.h"

#include <algorithm>
#include <cstring>

#include "fill.cuh"

namespace fmhc_gpu {
namespace {

FMHC_HD inline uint64_t bits_at(const View& view, int64_t index) {
  const int width = element_bytes(view.dtype);
  const auto* bytes = static_cast<const unsigned char*>(view.data) + view.offset(index) * width;
  uint64_t bits = 0;
  for (int b = 0; b < width; ++b) bits |= static_cast<uint64_t>(bytes[b]) << (8 * b);
  return bits;
}

struct SumView {
  View view;
  uint64_t key;
  unsigned long long* sum;
  int64_t count, strands;
  FMHC_HD void operator()(int64_t strand) const {
    unsigned long long mine = 0;
    for (int64_t i = strand; i < count; i += strands) {
      mine += mix64(bits_at(view, i) ^ mix64(static_cast<uint64_t>(i) + key));
    }
#if defined(__CUDA_ARCH__)
    atomicAdd(sum, mine);
#else
    *sum += mine;
#endif
  }
};

struct SameBits {
  View a, b;
  FMHC_HD Detail detail(int64_t index) const {
    const auto got = static_cast<double>(bits_at(a, index));
    const auto want = static_cast<double>(bits_at(b, index));
    return {got, want, want, want, want, {index, 0, 0}};
  }
};

int token_axis(SlotId slot) {
  const char* dims = slots()[slot].dims;
  const char* place = std::strchr(dims, 'T');
  return place == nullptr ? -1 : static_cast<int>(place - dims);
}

}  // namespace

void sum_outputs(Device& device, const Prepared& call, uint64_t* sum) {
  constexpr int64_t kStrands = 1 << 13;
  for (int index = kResidualOut; index < kSlots; ++index) {
    const View& view = call.view[index];
    if (view.data == nullptr) continue;
    const int64_t strands = device.is_cuda() ? std::min(kStrands, view.count()) : 1;
    for_each(device, strands,
             SumView{view, static_cast<uint64_t>(index) << 48, reinterpret_cast<unsigned long long*>(sum),
                     view.count(), strands});
  }
}

int64_t differing(Device& device, const View& a, const View& b) {
  Tally host{};
  auto* total = static_cast<Tally*>(device.allocate(sizeof(Tally)));
  device.copy_in(total, &host, sizeof host);
  tally(device, a.count(), SameBits{a, b}, total);
  device.copy_out(&host, total, sizeof host);
  device.release(total);
  return static_cast<int64_t>(host.misses);
}

View token_view(SlotId slot, const View& view, int64_t token) {
  const int axis = token_axis(slot);
  if (axis < 0 || view.data == nullptr) return view;
  View row = view;
  row.data = static_cast<char*>(view.data) + token * view.stride[axis] * element_bytes(view.dtype);
  row.shape[axis] = 1;
  return row;
}

void fill_nan(Device& device, const View& view) {
  for_each(device, view.count(), PoisonView{view});
}

Prepared single_token(Arena& arena, const Prepared& batch, int64_t token) {
  Prepared one = batch;
  one.spec.tokens = 1;
  const auto bytes_of = [](const View& view) {
    return static_cast<size_t>(view.count() * element_bytes(view.dtype));
  };
  for (int index = 0; index < kSlots; ++index) {
    const auto slot = static_cast<SlotId>(index);
    if (batch.view[index].data == nullptr) continue;
    if (slots()[index].in != nullptr) {
      one.view[index] = token_view(slot, batch.view[index], token);
    } else {
      one.view[index] = shape_of(batch.spec.problem, slot, {1, batch.splits});
      one.view[index].data = arena.take(bytes_of(one.view[index]));
    }
    set_tensor(&one.args, slot, one.view[index]);
  }
  if (one.args.scratch_bytes > 0) one.args.scratch = arena.take(one.args.scratch_bytes);
  return one;
}

SumLog::SumLog(Device& device, int64_t capacity)
    : device_(device),
      words_(static_cast<uint64_t*>(device.allocate(static_cast<size_t>(capacity) * sizeof(uint64_t)))),
      capacity_(capacity) {
  device.fill_bytes(words_, 0, static_cast<size_t>(capacity) * sizeof(uint64_t));
}

SumLog::~SumLog() {
  device_.release(words_);
}

uint64_t* SumLog::next() {
  if (used_ == capacity_) die("SumLog::next", "more runs than places");
  return words_ + used_++;
}

std::vector<uint64_t> SumLog::read() {
  std::vector<uint64_t> sums(static_cast<size_t>(used_));
  if (used_ > 0) device_.copy_out(sums.data(), words_, sums.size() * sizeof(uint64_t));
  return sums;
}

int64_t SumLog::count_unequal(uint64_t want) {
  const std::vector<uint64_t> sums = read();
  return static_cast<int64_t>(
      std::count_if(sums.begin(), sums.end(), [want](uint64_t sum) { return sum != want; }));
}

}  // namespace fmhc_gpu
