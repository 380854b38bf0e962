#include "fuzz_call.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <set>

#include "check/storage.h"

namespace fmhc::ops_test {
namespace {

using check::Case;
using check::Row;
using check::Tensors;
using check::Values;

constexpr size_t kGuard = 256;  // bytes before and after, where there is no unmapped page
constexpr std::byte kFill{0xff};

// Memory with an unmapped page behind its last byte, or guard bytes on both sides.
class Region {
 public:
  Region(size_t bytes, bool at_page_end) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (at_page_end) {
      mapped_ = (bytes + page - 1) / page * page + page;
      base_ = static_cast<std::byte*>(
          mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      if (base_ == MAP_FAILED || mprotect(base_ + mapped_ - page, page, PROT_NONE) != 0) std::abort();
      size_ = mapped_ - page;
      begin_ = size_ - bytes;
    } else {
      size_ = bytes + 2 * kGuard;
      base_ = static_cast<std::byte*>(::operator new(size_, std::align_val_t(256)));
      begin_ = kGuard;
    }
    std::memset(base_, 0xff, size_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() {
    if (mapped_ > 0) {
      munmap(base_, mapped_);
    } else {
      ::operator delete(base_, std::align_val_t(256));
    }
  }

  std::byte* data() const { return base_ + begin_; }
  // True if every byte but those that `element` marks (offsets from data()) still has the fill.
  bool intact(const std::vector<bool>& element) const {
    for (size_t i = 0; i < size_; ++i) {
      const bool owned = i >= begin_ && i - begin_ < element.size() && element[i - begin_];
      if (!owned && base_[i] != kFill) return false;
    }
    return true;
  }

 private:
  std::byte* base_ = nullptr;
  size_t mapped_ = 0, size_ = 0, begin_ = 0;
};

struct Placed {
  const char* name;
  std::unique_ptr<Region> region;
  fmhc_in view{};
  std::vector<bool> element;  // of an output, bytes
};

bool is_wide(const Row& row) {
  return row.kind == check::Kind::kResidual || row.kind == check::Kind::kNormWeight ||
         row.values == &Tensors::fn || row.values == &Tensors::dot_mix ||
         row.values == &Tensors::dot_mix_in || row.values == &Tensors::sqrsum ||
         row.values == &Tensors::sqrsum_in;
}

void lay_out(const Row& row, const Case& call, const Placement& placement, std::mt19937_64* random,
             fmhc_in* view) {
  const std::vector<int64_t> shape = check::shape_of(row, call);
  view->rank = static_cast<int32_t>(shape.size());
  view->dtype = check::dtype_of(row, call.problem);
  const auto padding = [&] { return placement.stride_seed == 0 ? 0 : static_cast<int64_t>((*random)() % 6); };
  int64_t stride = is_wide(row) ? 1 : 1 + padding();
  for (size_t axis = shape.size(); axis-- > 0;) {
    view->shape[axis] = shape[axis];
    view->stride[axis] = stride;
    stride = stride * shape[axis] + padding();
  }
  if (placement.broadcast && row.values == &Tensors::residual && view->rank == 3) {
    view->stride[0] = view->shape[2] + padding();
    view->stride[1] = 0;
  }
  if (placement.residual_memory != nullptr && row.values == &Tensors::residual) {
    view->stride[0] = placement.residual_token_stride;
  }
}

template <typename Visit>
void for_elements(const fmhc_in& view, const Visit& visit) {
  int64_t index[4] = {};
  int64_t count = 1;
  for (int axis = 0; axis < view.rank; ++axis) count *= view.shape[axis];
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (int axis = 0; axis < view.rank; ++axis) offset += index[axis] * view.stride[axis];
    visit(i, offset);
    for (int axis = view.rank - 1; axis >= 0 && ++index[axis] == view.shape[axis]; --axis) index[axis] = 0;
  }
}

Placed place(const Row& row, const Case& call, const Placement& placement, std::mt19937_64* random) {
  Placed placed{row.name, nullptr, {}, {}};
  lay_out(row, call, placement, random, &placed.view);
  int64_t last = 0;
  for (int axis = 0; axis < placed.view.rank; ++axis) {
    last += (placed.view.shape[axis] - 1) * placed.view.stride[axis];
  }
  const size_t element = check::find_format(placed.view.dtype)->bytes;
  const size_t bytes = static_cast<size_t>(last + 1) * element;
  const bool given = placement.residual_memory != nullptr && row.values == &Tensors::residual;
  if (!given) placed.region = std::make_unique<Region>(bytes, placement.at_page_end);
  void* data = given ? placement.residual_memory : placed.region->data();
  placed.view.data = data;
  const bool output = row.out != nullptr;
  if (output) placed.element.assign(bytes, false);
  const Values& values = call.in.*row.values;
  for_elements(placed.view, [&](int64_t i, int64_t offset) {
    check::store(output ? std::numeric_limits<double>::quiet_NaN() : values[static_cast<size_t>(i)],
                 placed.view.dtype, data, offset);
    if (output) std::fill_n(placed.element.begin() + offset * static_cast<int64_t>(element), element, true);
  });
  return placed;
}

fmhc_out as_output(const fmhc_in& view) {
  return std::bit_cast<fmhc_out>(view);
}

int32_t make_plan(const Case& call, const Placement& placement, fmhc_plan* plan, fmhc_diag* diag) {
  fmhc_target target{};
  target.struct_size = sizeof target;
  if (const int32_t code = fmhc_target_query(FMHC_CPU, 0, &target, diag); code != FMHC_OK) return code;
  if (placement.executor != nullptr) target.num_units = placement.executor->threads;
  fmhc_hints hints{};
  hints.struct_size = sizeof hints;
  hints.kernel = placement.kernel;
  if (call.problem.op == FMHC_PROJECT) hints.split_k = static_cast<int32_t>(call.splits);
  fmhc_problem problem = call.problem;
  if (placement.stride_seed != 0 || placement.broadcast || placement.residual_memory != nullptr)
    problem.strided = 1;
  return fmhc_plan_make(&problem, &target, &hints, plan, diag);
}

}  // namespace

Outcome run_call(const Case& call, const Placement& placement) {
  Outcome outcome;
  std::mt19937_64 random(placement.stride_seed);
  fmhc_args args{};
  args.struct_size = sizeof args;
  args.executor = placement.executor;
  std::vector<Placed> placed;
  for (const Row& row : check::rows()) {
    if (!check::has(row, call)) continue;
    if (placement.in_place && row.values == &Tensors::residual_out) {
      args.residual_out = std::bit_cast<fmhc_out>(args.residual);
      continue;
    }
    placed.push_back(place(row, call, placement, &random));
    if (row.in != nullptr) {
      args.*row.in = placed.back().view;
    } else {
      args.*row.out = as_output(placed.back().view);
    }
  }
  fmhc_diag diag{};
  fmhc_plan plan{};
  outcome.code = make_plan(call, placement, &plan, &diag);
  if (outcome.code != FMHC_OK) {
    outcome.text = diag.text;
    return outcome;
  }
  args.scratch_bytes = fmhc_plan_scratch(&plan);
  const Region scratch(args.scratch_bytes, placement.at_page_end);
  args.scratch = args.scratch_bytes > 0 ? scratch.data() : nullptr;
  outcome.code = fmhc_run(&plan, &args, &diag);
  outcome.text = outcome.code == FMHC_OK ? "" : diag.text;
  if (!scratch.intact(std::vector<bool>(args.scratch_bytes, true))) outcome.damage = "scratch";
  for (const Placed& tensor : placed) {
    if (!tensor.element.empty() && !tensor.region->intact(tensor.element)) outcome.damage = tensor.name;
  }
  Case ignored;
  check::read_args(call.problem, args, &ignored, &outcome.out);
  return outcome;
}

std::vector<std::string> runnable_targets() {
  std::set<std::string> prefixes;
  for (int32_t i = 0; const char* name = fmhc_kernel_name(i); ++i) {
    const std::string kernel = name;
    if (kernel.starts_with("cpu.")) prefixes.insert(kernel.substr(0, kernel.find('.', 4)));
  }
  std::vector<std::string> runnable;
  fmhc_problem problem{};
  problem.struct_size = sizeof problem;
  problem.op = FMHC_POST;
  problem.streams = 4;
  problem.residual_dtype = FMHC_BF16;
  problem.projection = FMHC_CLASS_F;
  problem.hidden = 8;
  problem.max_tokens = 1;
  fmhc_target target{};
  target.struct_size = sizeof target;
  if (fmhc_target_query(FMHC_CPU, 0, &target, nullptr) != FMHC_OK) return {};
  for (const std::string& prefix : prefixes) {
    fmhc_hints hints{};
    hints.struct_size = sizeof hints;
    hints.kernel = prefix.c_str();
    if (fmhc_supported(&problem, &target, &hints, nullptr) == FMHC_OK) runnable.push_back(prefix);
  }
  return runnable;
}

bool same_bits(const Tensors& a, const Tensors& b, std::string* where) {
  for (const Row& row : check::rows()) {
    if (row.out == nullptr) continue;
    const Values& left = a.*row.values;
    const Values& right = b.*row.values;
    if (left.size() != right.size()) {
      *where = std::string(row.name) + " sizes";
      return false;
    }
    for (size_t i = 0; i < left.size(); ++i) {
      if (std::bit_cast<uint64_t>(left[i]) == std::bit_cast<uint64_t>(right[i])) continue;
      *where = std::string(row.name) + "[" + std::to_string(i) + "]: " + std::to_string(left[i]) + " and " +
               std::to_string(right[i]);
      return false;
    }
  }
  return true;
}

namespace {

// Tokens are the first axis, or the second of partials.
Values pick_from(const Row& row, const Case& call, const Values& values, const std::vector<int64_t>& tokens) {
  const std::string dims = row.dims;
  const size_t axis = dims.find('T');
  if (axis == std::string::npos || values.empty()) return values;
  const std::vector<int64_t> shape = check::shape_of(row, call);
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  Values picked;
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t token : tokens) {
      const auto begin = values.begin() + (o * shape[axis] + token) * inner;
      picked.insert(picked.end(), begin, begin + inner);
    }
  }
  return picked;
}

}  // namespace

Case pick_tokens(const Case& call, const std::vector<int64_t>& tokens) {
  Case picked = call;
  picked.tokens = static_cast<int64_t>(tokens.size());
  picked.problem.max_tokens = std::max<int64_t>(picked.tokens, 1);
  for (const Row& row : check::rows()) {
    if (row.in != nullptr && check::has(row, call)) {
      picked.in.*row.values = pick_from(row, call, call.in.*row.values, tokens);
    }
  }
  return picked;
}

Tensors pick_outputs(const Case& call, const Tensors& out, const std::vector<int64_t>& tokens) {
  Tensors picked;
  for (const Row& row : check::rows()) {
    if (row.out != nullptr && check::has(row, call)) {
      picked.*row.values = pick_from(row, call, out.*row.values, tokens);
    }
  }
  return picked;
}

}  // namespace fmhc::ops_test
