#include "bench_cell.h"

#include <algorithm>
#include <cmath>

#include "fill.h"

namespace fmhc_gpu {
namespace {

constexpr int kLeastCalls = 20;
constexpr int kMostCalls = 2048;
constexpr double kLeastGraphUs = 400;  // so that the start of a replay does not show
constexpr int64_t kFinishSplits = 16;
constexpr size_t kFlushBytes = size_t{256} << 20;
constexpr size_t kMostVerified = size_t{64} << 20;

size_t align_up(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// Tensors that count for the floor; the coefficients of a token are a few bytes.
bool counts(SlotId slot) {
  return slots()[slot].wide || slot == kFn || slot == kNormWeight || slot == kDotMixIn || slot == kSqrsumIn;
}

struct Buffers {
  View view[kSlots];
  size_t step[kSlots] = {};  // bytes between sets
  int sets[kSlots] = {};
  char* base[kSlots] = {};
};

struct Layout {
  double bytes = 0;
  int calls = 0;
  Buffers buffers;
};

bool wanted(const Cell& cell, SlotId slot) {
  return takes(cell.problem, slot) && (slot != kPreMix || cell.problem.carried_pre != 0);
}

Layout lay_out(const Cell& cell, int64_t splits) {
  Layout layout;
  double all = 0;
  for (int index = 0; index < kSlots; ++index) {
    const auto slot = static_cast<SlotId>(index);
    if (!wanted(cell, slot)) continue;
    View& view = layout.buffers.view[index];
    view = shape_of(cell.problem, slot, {cell.tokens, splits});
    const size_t bytes = static_cast<size_t>(view.count() * element_bytes(view.dtype));
    layout.buffers.step[index] = align_up(bytes);
    all += static_cast<double>(bytes);
    if (counts(slot)) layout.bytes += static_cast<double>(bytes);
  }
  // Bytes that others touch between two uses of one set must pass twice the L2.
  const auto rotate = [](double bytes, double others) {
    const double sets = std::ceil(std::max(kColdBytes - others, 0.0) / std::max(bytes, 1.0)) + 1;
    return static_cast<int>(std::clamp(sets, 2.0, static_cast<double>(kMostCalls)));
  };
  const auto fn_bytes = static_cast<double>(layout.buffers.step[kFn]);
  const int cold_sets = rotate(all, 0);
  const int fn_sets = rotate(fn_bytes, all - fn_bytes);
  int most = 1;
  for (int index = 0; index < kSlots; ++index) {
    int& sets = layout.buffers.sets[index];
    if (layout.buffers.view[index].rank == 0) continue;
    sets = cell.warm ? 1 : cold_sets;
    if (index == kFn && cell.warm) sets = fn_sets;
    if (index == kScale || index == kBase || index == kNormWeight) sets = 1;
    most = std::max(most, sets);
  }
  const double guess = layout.bytes / (kFloorTbps * 1e6) + 2;
  const int enough = static_cast<int>(std::min<double>(kMostCalls, std::ceil(kLeastGraphUs / guess)));
  layout.calls = cell.mode == Mode::kAlone ? 1 : std::max({kLeastCalls, most, enough});
  return layout;
}

struct Call {
  explicit Call(Device& device_in) : device(device_in) {}

  Device& device;
  fmhc_plan plan{};
  fmhc_args args{};
  Layout layout;
  char* packed = nullptr;
  size_t packed_bytes = 0, packed_step = 0;
  fmhc_diag diag{};

  bool run(int index) {
    for (int slot = 0; slot < kSlots; ++slot) {
      View view = layout.buffers.view[slot];
      if (view.rank == 0) continue;
      const auto set = static_cast<size_t>(index % layout.buffers.sets[slot]);
      view.data = layout.buffers.base[slot] + set * layout.buffers.step[slot];
      set_tensor(&args, static_cast<SlotId>(slot), view);
    }
    if (packed != nullptr) {
      const auto set = static_cast<size_t>(index % layout.buffers.sets[kFn]);
      args.fn_packed = {
          packed + set * packed_step, {static_cast<int64_t>(packed_bytes), 0, 0, 0}, {1, 0, 0, 0}, 1, 0};
    }
    return fmhc_run(&plan, &args, &diag) == FMHC_OK;
  }

  bool pack_all() {
    for (int set = 0; packed != nullptr && set < layout.buffers.sets[kFn]; ++set) {
      View view = layout.buffers.view[kFn];
      view.data = layout.buffers.base[kFn] + static_cast<size_t>(set) * layout.buffers.step[kFn];
      fmhc_args holder{};
      set_tensor(&holder, kFn, view);
      if (fmhc_prepare(&plan, &holder.fn, packed + static_cast<size_t>(set) * packed_step, packed_bytes,
                       device.stream_handle(), &diag) != FMHC_OK) {
        return false;
      }
    }
    return true;
  }
};

// The graph's last result and an eager call's must be the same bytes: a programmatic launch that starts too
// early would show here.
bool graph_equals_eager(Device& device, Call* call, uint64_t* sum, std::string* error) {
  for (const SlotId output : {kResidualOut, kLayerInput, kDotMix}) {
    const View& view = call->layout.buffers.view[output];
    const size_t bytes = call->layout.buffers.step[output];
    if (view.rank == 0 || bytes > kMostVerified) continue;
    const int last = call->layout.calls - 1;
    char* data = call->layout.buffers.base[output] +
                 static_cast<size_t>(last % call->layout.buffers.sets[output]) * bytes;
    const uint64_t from_graph = checksum_of(device, data, bytes, sum);
    device.fill_bytes(data, 0xff, static_cast<size_t>(view.count() * element_bytes(view.dtype)));
    const uint64_t poison = checksum_of(device, data, bytes, sum);
    if (!call->run(last)) {
      *error = call->diag.text;
      return false;
    }
    const uint64_t eager = checksum_of(device, data, bytes, sum);
    if (eager != from_graph || eager == poison) {
      *error = std::string(slots()[output].name) + " of the graph's last call differs from an eager call's";
      return false;
    }
  }
  return true;
}

}  // namespace

const char* mode_name(Mode mode) {
  return mode == Mode::kChained ? "chained" : mode == Mode::kForeign ? "foreign" : "alone";
}

bool parse_op(const std::string& text, fmhc_problem* problem) {
  std::string rest = text;
  bool first = true;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('+'), rest.size());
    const std::string word = rest.substr(0, end);
    rest = end < rest.size() ? rest.substr(end + 1) : "";
    if (first) {
      first = false;
      int32_t op = FMHC_CONTRACT;
      while (op >= FMHC_EXPAND && word != op_name(op)) --op;
      if (op < FMHC_EXPAND) return false;
      problem->op = op;
    } else if (word == "norm" || word == "unfused") {
      problem->norm = word == "norm" ? FMHC_NORM_ENGINE : FMHC_NORM_UNFUSED;
      problem->norm_weight_dtype = FMHC_BF16;
    } else if (word == "carried") {
      problem->carried_pre = 1;
    } else {
      return false;
    }
  }
  return !first;
}

Pools::~Pools() {
  for (Pool& pool : slots_) {
    if (pool.data != nullptr) device_.release(pool.data);
  }
  for (Pool& pool : memory_) {
    if (pool.data != nullptr) device_.release(pool.data);
  }
}

void Pools::begin(int64_t flat, int64_t splits) {
  if (flat == flat_ && splits == splits_) return;
  flat_ = flat;
  splits_ = splits;
  for (const SlotId slot : {kFn, kDotMixIn, kSqrsumIn}) {
    if (slots_[slot].data != nullptr)
      fill_pool(device_, slot, slots_[slot].dtype, slots_[slot].data, slots_[slot].bytes, flat_, splits_);
  }
}

char* Pools::take(SlotId slot, int32_t dtype, size_t bytes) {
  Pool& pool = slots_[slot];
  if (pool.bytes >= bytes && pool.dtype == dtype) return pool.data;
  if (pool.bytes < bytes) {
    device_.wait();
    if (pool.data != nullptr) device_.release(pool.data);
    pool.data = static_cast<char*>(device_.allocate(bytes));
    pool.bytes = bytes;
  }
  pool.dtype = dtype;
  fill_pool(device_, slot, dtype, pool.data, pool.bytes, flat_, splits_);
  return pool.data;
}

char* Pools::memory(int index, size_t bytes) {
  Pool& pool = memory_[index];
  if (pool.bytes < bytes) {
    device_.wait();
    if (pool.data != nullptr) device_.release(pool.data);
    pool.data = static_cast<char*>(device_.allocate(bytes));
    pool.bytes = bytes;
  }
  return pool.data;
}

std::vector<int64_t> plan_edges(Device& device, const fmhc_problem& problem, const std::string& kernel_hint) {
  std::vector<int64_t> edges;
  fmhc_plan plan{};
  fmhc_hints hints{};
  hints.struct_size = sizeof hints;
  hints.kernel = kernel_hint.empty() ? nullptr : kernel_hint.c_str();
  if (fmhc_plan_make(&problem, &device.target(), &hints, &plan, nullptr) != FMHC_OK) return edges;
  for (int64_t t = 1; t < problem.max_tokens; ++t) {
    if (fmhc_plan_kernel(&plan, t) != fmhc_plan_kernel(&plan, t + 1) ||
        fmhc_plan_split_k(&plan, t) != fmhc_plan_split_k(&plan, t + 1)) {
      edges.push_back(t);
    }
  }
  return edges;
}

double foreign_alone_us(Device& device, Pools& pools, int replays) {
  auto* sink = reinterpret_cast<float*>(pools.memory(3, 256));
  constexpr int kCalls = 200;
  return time_calls(device, replays, kCalls,
                    [&] {
                      for (int i = 0; i < kCalls; ++i) launch_foreign(device, sink);
                      return true;
                    })
      .us;
}

double empty_graph_us(Device& device, int replays) {
  return time_calls(device, replays, 1,
                    [&] {
                      launch_nothing(device);
                      return true;
                    })
      .us;
}

Measured Bench::measure(const Cell& cell, const std::string& kernel_hint) {
  Measured result;
  Call call(device);
  fmhc_hints hints{};
  hints.struct_size = sizeof hints;
  hints.kernel = kernel_hint.empty() ? nullptr : kernel_hint.c_str();
  const int32_t code = fmhc_plan_make(&cell.problem, &device.target(), &hints, &call.plan, &call.diag);
  if (code != FMHC_OK) {
    result.absent = code == FMHC_UNSUPPORTED || hints.kernel != nullptr;
    result.error = call.diag.text;
    return result;
  }
  result.kernel = fmhc_plan_kernel(&call.plan, cell.tokens);
  result.splits = fmhc_plan_split_k(&call.plan, cell.tokens);
  const int64_t splits = cell.problem.op == FMHC_FINISH ? kFinishSplits : result.splits;
  call.layout = lay_out(cell, splits);
  result.calls = call.layout.calls;
  result.bytes = call.layout.bytes;
  result.floor_us = result.bytes / (kFloorTbps * 1e6);
  pools.begin(flat_of(cell.problem), splits);
  for (int slot = 0; slot < kSlots; ++slot) {
    const View& view = call.layout.buffers.view[slot];
    if (view.rank == 0) continue;
    call.layout.buffers.base[slot] =
        pools.take(static_cast<SlotId>(slot), view.dtype,
                   call.layout.buffers.step[slot] * static_cast<size_t>(call.layout.buffers.sets[slot]));
  }
  call.args.struct_size = sizeof call.args;
  call.args.stream = device.stream_handle();
  call.args.scratch_bytes = fmhc_plan_scratch(&call.plan);
  call.args.state_bytes = fmhc_plan_state(&call.plan);
  call.args.scratch = pools.memory(0, call.args.scratch_bytes);
  call.args.state = pools.memory(1, call.args.state_bytes);
  call.packed_bytes = fmhc_plan_packed(&call.plan);
  call.packed_step = align_up(call.packed_bytes);
  if (call.packed_bytes > 0) {
    call.packed = pools.memory(2, call.packed_step * static_cast<size_t>(call.layout.buffers.sets[kFn]));
  }
  auto* sink = reinterpret_cast<float*>(pools.memory(3, 256));
  if (!call.pack_all() || fmhc_state_init(&call.plan, call.args.state, call.args.state_bytes,
                                          device.stream_handle(), &call.diag) != FMHC_OK) {
    result.error = call.diag.text;
    return result;
  }
  device.wait();
  const auto enqueue = [&] {
    for (int i = 0; i < call.layout.calls; ++i) {
      if (cell.mode == Mode::kForeign) launch_foreign(device, sink);
      if (!call.run(i)) return false;
    }
    return true;
  };
  const auto flush = [&] {  // of the L2, and of whatever overlaps
    if (cell.mode == Mode::kAlone) device.fill_bytes(pools.memory(4, kFlushBytes), 0, kFlushBytes);
  };
  result.timing = time_calls(device, replays, call.layout.calls, enqueue, flush);
  if (!result.timing.ok) {
    result.error = call.diag.text;
    return result;
  }
  device.wait();
  result.us = result.timing.us - (cell.mode == Mode::kForeign ? foreign_us
                                  : cell.mode == Mode::kAlone ? empty_us
                                                              : 0);
  (void)graph_equals_eager(device, &call, reinterpret_cast<uint64_t*>(sink) + 8, &result.error);
  return result;
}

}  // namespace fmhc_gpu
