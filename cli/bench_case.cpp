#include "cli/bench_case.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

namespace fmhc::cli {
namespace {

constexpr std::align_val_t kAlignment{256};
constexpr int kMostCopies = 4096;

constexpr uint32_t bit(int32_t op) {
  return 1u << op;
}
constexpr uint32_t kProjects = bit(FMHC_PROJECT) | bit(FMHC_PRE) | bit(FMHC_SEAM) | bit(FMHC_HEAD);
constexpr uint32_t kMixes = bit(FMHC_FINISH) | bit(FMHC_PRE) | bit(FMHC_SEAM);
constexpr uint32_t kCollapses = kMixes | bit(FMHC_HEAD) | bit(FMHC_CONTRACT);
constexpr uint32_t kPosts = bit(FMHC_POST) | bit(FMHC_SEAM);
constexpr uint32_t kAll = kProjects | kCollapses | kPosts | bit(FMHC_EXPAND);

enum class Axis : uint8_t { kNone, kTokens, kStreams, kHidden, kFlat, kLogits, kSlices, kScales };
enum class Storage : uint8_t { kStreams, kCoefficient, kFp32, kNorm };
enum class When : uint8_t { kAlways, kCarried, kNorm };

struct Tensor {
  size_t offset;  // in fmhc_args
  bool output;
  uint32_t ops;
  When when;
  Storage storage;
  Axis axes[3];
};

#define FMHC_TENSOR(field, output) offsetof(fmhc_args, field), output
constexpr Tensor kTensors[] = {
    {FMHC_TENSOR(residual, false),
     kAll & ~bit(FMHC_EXPAND),
     When::kAlways,
     Storage::kStreams,
     {Axis::kTokens, Axis::kStreams, Axis::kHidden}},
    {FMHC_TENSOR(residual, false),
     bit(FMHC_EXPAND),
     When::kAlways,
     Storage::kStreams,
     {Axis::kTokens, Axis::kHidden, Axis::kNone}},
    {FMHC_TENSOR(sublayer_output, false),
     kPosts,
     When::kAlways,
     Storage::kStreams,
     {Axis::kTokens, Axis::kHidden, Axis::kNone}},
    {FMHC_TENSOR(post_in, false),
     kPosts,
     When::kAlways,
     Storage::kCoefficient,
     {Axis::kTokens, Axis::kStreams, Axis::kNone}},
    {FMHC_TENSOR(comb_in, false),
     kPosts,
     When::kAlways,
     Storage::kCoefficient,
     {Axis::kTokens, Axis::kStreams, Axis::kStreams}},
    {FMHC_TENSOR(pre_in, false),
     kCollapses,
     When::kCarried,
     Storage::kCoefficient,
     {Axis::kTokens, Axis::kStreams, Axis::kNone}},
    {FMHC_TENSOR(fn, false),
     kProjects,
     When::kAlways,
     Storage::kFp32,
     {Axis::kLogits, Axis::kFlat, Axis::kNone}},
    {FMHC_TENSOR(scale, false),
     kMixes | bit(FMHC_HEAD),
     When::kAlways,
     Storage::kFp32,
     {Axis::kScales, Axis::kNone, Axis::kNone}},
    {FMHC_TENSOR(base, false),
     kMixes | bit(FMHC_HEAD),
     When::kAlways,
     Storage::kFp32,
     {Axis::kLogits, Axis::kNone, Axis::kNone}},
    {FMHC_TENSOR(norm_weight, false),
     kCollapses,
     When::kNorm,
     Storage::kNorm,
     {Axis::kHidden, Axis::kNone, Axis::kNone}},
    {FMHC_TENSOR(dot_mix_in, false),
     bit(FMHC_FINISH),
     When::kAlways,
     Storage::kCoefficient,
     {Axis::kSlices, Axis::kTokens, Axis::kLogits}},
    {FMHC_TENSOR(sqrsum_in, false),
     bit(FMHC_FINISH),
     When::kAlways,
     Storage::kCoefficient,
     {Axis::kSlices, Axis::kTokens, Axis::kNone}},
    {FMHC_TENSOR(residual_out, true),
     kPosts | bit(FMHC_EXPAND),
     When::kAlways,
     Storage::kStreams,
     {Axis::kTokens, Axis::kStreams, Axis::kHidden}},
    {FMHC_TENSOR(layer_input, true),
     kCollapses,
     When::kAlways,
     Storage::kStreams,
     {Axis::kTokens, Axis::kHidden, Axis::kNone}},
    {FMHC_TENSOR(post_mix, true),
     kMixes,
     When::kAlways,
     Storage::kCoefficient,
     {Axis::kTokens, Axis::kStreams, Axis::kNone}},
    {FMHC_TENSOR(comb_mix, true),
     kMixes,
     When::kAlways,
     Storage::kCoefficient,
     {Axis::kTokens, Axis::kStreams, Axis::kStreams}},
    {FMHC_TENSOR(pre_mix, true),
     kMixes,
     When::kCarried,
     Storage::kCoefficient,
     {Axis::kTokens, Axis::kStreams, Axis::kNone}},
    {FMHC_TENSOR(dot_mix, true),
     bit(FMHC_PROJECT),
     When::kAlways,
     Storage::kCoefficient,
     {Axis::kSlices, Axis::kTokens, Axis::kLogits}},
    {FMHC_TENSOR(sqrsum, true),
     bit(FMHC_PROJECT),
     When::kAlways,
     Storage::kCoefficient,
     {Axis::kSlices, Axis::kTokens, Axis::kNone}},
};
#undef FMHC_TENSOR

int64_t logit_count(const fmhc_problem& problem) {
  const int64_t n = problem.streams;
  return problem.op == FMHC_HEAD ? n : n * (2 + n);
}

int64_t extent(Axis axis, const fmhc_problem& problem, int32_t slices) {
  switch (axis) {
    case Axis::kTokens:
      return problem.max_tokens;
    case Axis::kStreams:
      return problem.streams;
    case Axis::kHidden:
      return problem.hidden;
    case Axis::kFlat:
      return problem.streams * problem.hidden;
    case Axis::kLogits:
      return logit_count(problem);
    case Axis::kSlices:
      return slices;
    case Axis::kScales:
      return problem.op == FMHC_HEAD ? 1 : 3;
    case Axis::kNone:
      break;
  }
  return 1;
}

int32_t dtype_of(Storage storage, const fmhc_problem& problem) {
  switch (storage) {
    case Storage::kStreams:
      return problem.residual_dtype;
    case Storage::kNorm:
      return problem.norm_weight_dtype;
    case Storage::kCoefficient:
      return problem.residual_dtype == FMHC_FP64 ? FMHC_FP64 : FMHC_FP32;
    case Storage::kFp32:
      break;
  }
  return FMHC_FP32;
}

size_t bytes_of(int32_t dtype) {
  return dtype == FMHC_FP64 ? 8 : dtype == FMHC_FP32 ? 4 : 2;
}

bool is_used(const Tensor& tensor, const fmhc_problem& problem) {
  if ((tensor.ops & bit(problem.op)) == 0) return false;
  if (tensor.when == When::kCarried) return problem.carried_pre != 0;
  return tensor.when == When::kAlways || problem.norm != FMHC_NORM_NONE;
}

// Random signs and mantissas, magnitudes in [0.5, 1): no kernel of ours is faster on easier numbers, but a
// core may be on zeros.
void fill(std::byte* data, size_t bytes, int32_t dtype, uint32_t* seed) {
  const size_t size = bytes_of(dtype);
  for (size_t at = 0; at < bytes; at += size) {
    *seed = *seed * 1664525u + 1013904223u;
    const uint32_t random = *seed >> 8;
    const uint32_t sign = random & 1;
    const uint32_t single = sign << 31 | 126u << 23 | (random & 0x7fffffu);
    const auto half = static_cast<uint16_t>(
        dtype == FMHC_FP16 ? sign << 15 | 14u << 10 | (random >> 1 & 0x3ffu) : single >> 16);
    const uint64_t wide = uint64_t{sign} << 63 | uint64_t{1022} << 52 | uint64_t{random} << 20;
    const void* value = size == 2   ? static_cast<const void*>(&half)
                        : size == 4 ? static_cast<const void*>(&single)
                                    : static_cast<const void*>(&wide);
    std::memcpy(data + at, value, size);
  }
}

}  // namespace

void BenchCase::Free::operator()(std::byte* bytes) const {
  ::operator delete(bytes, kAlignment);
}

BenchCase::BenchCase(const fmhc_problem& problem, const fmhc_target& target, const fmhc_hints& hints,
                     const fmhc_executor& executor, int64_t rotate_bytes)
    : problem_(problem), executor_(executor) {
  fmhc_diag diag{};
  require_ok(fmhc_plan_make(&problem, &target, &hints, &plan_, &diag), diag);
  scratch_ = allocate(fmhc_plan_scratch(&plan_));
  const size_t state_bytes = fmhc_plan_state(&plan_);
  state_ = allocate(state_bytes);
  if (state_bytes > 0) require_ok(fmhc_state_init(&plan_, state_, state_bytes, nullptr, &diag), diag);
  do {
    bytes_ = 0;
    add_copy();
  } while (bytes_ * copies() < static_cast<double>(rotate_bytes) && copies() < kMostCopies);
}

std::byte* BenchCase::allocate(size_t bytes) {
  auto* data = static_cast<std::byte*>(::operator new(std::max<size_t>(bytes, 1), kAlignment));
  memory_.emplace_back(data);
  return data;
}

void BenchCase::add_copy() {
  fmhc_args args{};
  args.struct_size = sizeof args;
  for (const Tensor& tensor : kTensors) {
    if (!is_used(tensor, problem_)) continue;
    fmhc_out view{};
    view.dtype = dtype_of(tensor.storage, problem_);
    while (view.rank < 3 && tensor.axes[view.rank] != Axis::kNone) ++view.rank;
    int64_t elements = 1;
    for (int32_t axis = view.rank - 1; axis >= 0; --axis) {
      view.shape[axis] = extent(tensor.axes[axis], problem_, split_k());
      view.stride[axis] = elements;
      elements *= view.shape[axis];
    }
    const size_t bytes = static_cast<size_t>(elements) * bytes_of(view.dtype);
    auto* data = allocate(bytes);
    fill(data, bytes, view.dtype, &seed_);
    view.data = data;
    bytes_ += static_cast<double>(bytes);
    // fmhc_in and fmhc_out have one layout.
    std::memcpy(reinterpret_cast<std::byte*>(&args) + tensor.offset, &view, sizeof view);
  }
  args.scratch = scratch_;
  args.scratch_bytes = fmhc_plan_scratch(&plan_);
  args.state = state_;
  args.state_bytes = fmhc_plan_state(&plan_);
  args.executor = &executor_;
  pack(&args);
  calls_.push_back(args);
}

void BenchCase::pack(fmhc_args* args) {
  const size_t bytes = fmhc_plan_packed(&plan_);
  if (bytes == 0) return;
  auto* packed = allocate(bytes);
  fmhc_diag diag{};
  require_ok(fmhc_prepare(&plan_, &args->fn, packed, bytes, nullptr, &diag), diag);
  const auto count = static_cast<int64_t>(bytes);
  args->fn_packed = {packed, {count, 0, 0, 0}, {1, 0, 0, 0}, 1, 0};
}

void BenchCase::run_next() {
  fmhc_diag diag{};
  require_ok(fmhc_run(&plan_, &calls_[next_], &diag), diag);
  next_ = next_ + 1 == calls_.size() ? 0 : next_ + 1;
}

BenchTiming BenchCase::time(int samples, double sample_us) {
  using Clock = std::chrono::steady_clock;
  const auto timed = [&](int calls) {
    const auto begin = Clock::now();
    for (int call = 0; call < calls; ++call) run_next();
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls;
  };
  timed(1);
  const int calls = static_cast<int>(std::clamp(sample_us / timed(1), 1.0, 1e5));
  std::vector<double> times;
  for (int sample = 0; sample < samples; ++sample) times.push_back(timed(calls));
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) { return times[static_cast<size_t>(share * (samples - 1) + 0.5)]; };
  return {at(0.5), (at(0.9) - at(0.1)) / at(0.5), samples, calls};
}

double BenchCase::flops() const {
  const auto n = static_cast<double>(problem_.streams);
  const double elements = static_cast<double>(problem_.max_tokens) * n * static_cast<double>(problem_.hidden);
  double an_element = 0;
  if ((kProjects & bit(problem_.op)) != 0) an_element += 2 * (static_cast<double>(logit_count(problem_)) + 1);
  if ((kCollapses & bit(problem_.op)) != 0) an_element += 2;
  if ((kPosts & bit(problem_.op)) != 0) an_element += 2 * (n + 1);
  return elements * an_element;
}

}  // namespace fmhc::cli
