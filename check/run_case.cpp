#include "check/run_case.h"

#include <cmath>
#include <limits>
#include <memory>
#include <new>

#include "check/storage.h"

namespace fmhc::check {
namespace {

constexpr std::align_val_t kAlign{256};

struct FreeAligned {
  void operator()(std::byte* pointer) const { ::operator delete(pointer, kAlign); }
};
using Memory = std::unique_ptr<std::byte, FreeAligned>;

Memory allocate(size_t bytes) {
  return Memory(static_cast<std::byte*>(::operator new(bytes + 1, kAlign)));
}

template <class View>
void describe(const std::vector<int64_t>& shape, int32_t dtype, View* view) {
  view->rank = static_cast<int32_t>(shape.size());
  view->dtype = dtype;
  int64_t packed = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    view->shape[axis] = shape[axis];
    view->stride[axis] = packed;
    packed *= shape[axis];
  }
}

// The call's tensors in their storage formats.
struct Encoded {
  std::vector<Memory> buffers;
  fmhc_args args{};
};

std::string encode(const Case& call, Encoded* encoded) {
  encoded->args.struct_size = sizeof(fmhc_args);
  for (const Row& row : rows()) {
    if (!has(row, call)) continue;
    const std::vector<int64_t> shape = shape_of(row, call);
    const int32_t dtype = dtype_of(row, call.problem);
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    if (find_format(dtype) == nullptr) return std::string(row.name) + " has no dtype";
    Memory memory = allocate(static_cast<size_t>(count) * find_format(dtype)->bytes);
    const Values& values = call.in.*row.values;
    if (row.in != nullptr && static_cast<int64_t>(values.size()) != count) {
      return std::string(row.name) + " has " + std::to_string(values.size()) + " values; expected " +
             std::to_string(count);
    }
    for (int64_t i = 0; i < count; ++i) {
      store(row.in != nullptr ? values[static_cast<size_t>(i)] : std::numeric_limits<double>::quiet_NaN(),
            dtype, memory.get(), i);
    }
    if (row.in != nullptr) {
      describe(shape, dtype, &(encoded->args.*row.in));
      (encoded->args.*row.in).data = memory.get();
    } else {
      describe(shape, dtype, &(encoded->args.*row.out));
      (encoded->args.*row.out).data = memory.get();
    }
    encoded->buffers.push_back(std::move(memory));
  }
  return {};
}

// Weights that the plan wants packed.
int32_t pack(const fmhc_plan& plan, Encoded* encoded, fmhc_diag* diag) {
  const size_t bytes = fmhc_plan_packed(&plan);
  if (bytes == 0) return FMHC_OK;
  Memory memory = allocate(bytes);
  const int32_t code = fmhc_prepare(&plan, &encoded->args.fn, memory.get(), bytes, nullptr, diag);
  encoded->args.fn_packed = {memory.get(), {static_cast<int64_t>(bytes)}, {1}, 1, 0};
  encoded->buffers.push_back(std::move(memory));
  return code;
}

int32_t plan_and_run(const Case& call, const RunOptions& options, Encoded* encoded, fmhc_plan* plan,
                     fmhc_diag* diag) {
  fmhc_target target{};
  target.struct_size = sizeof target;
  if (const int32_t code = fmhc_target_query(FMHC_CPU, 0, &target, diag); code != FMHC_OK) return code;
  fmhc_hints hints{};
  hints.struct_size = sizeof hints;
  hints.kernel = options.kernel;
  if (call.problem.op == FMHC_PROJECT) hints.split_k = static_cast<int32_t>(call.splits);
  plan->struct_size = sizeof *plan;
  if (const int32_t code = fmhc_plan_make(&call.problem, &target, &hints, plan, diag); code != FMHC_OK) {
    return code;
  }
  if (const int32_t code = pack(*plan, encoded, diag); code != FMHC_OK) return code;
  fmhc_args& args = encoded->args;
  args.scratch_bytes = fmhc_plan_scratch(plan);
  args.state_bytes = fmhc_plan_state(plan);
  encoded->buffers.push_back(allocate(args.scratch_bytes));
  args.scratch = args.scratch_bytes > 0 ? encoded->buffers.back().get() : nullptr;
  encoded->buffers.push_back(allocate(args.state_bytes));
  args.state = args.state_bytes > 0 ? encoded->buffers.back().get() : nullptr;
  if (args.state_bytes > 0) {
    const int32_t code = fmhc_state_init(plan, args.state, args.state_bytes, nullptr, diag);
    if (code != FMHC_OK) return code;
  }
  args.executor = options.executor;
  return fmhc_run(plan, &args, diag);
}

}  // namespace

RunResult run_case(const Case& call, const RunOptions& options) {
  RunResult result;
  Encoded encoded;
  result.text = encode(call, &encoded);
  if (!result.text.empty()) {
    result.code = FMHC_INVALID;
    return result;
  }
  fmhc_plan plan{};
  fmhc_diag diag{};
  result.code = plan_and_run(call, options, &encoded, &plan, &diag);
  if (result.code != FMHC_OK) {
    result.text = diag.text;
    return result;
  }
  const char* kernel = fmhc_plan_kernel(&plan, call.tokens);
  result.kernel = kernel != nullptr ? kernel : "";
  Case ignored;
  read_args(call.problem, encoded.args, &ignored, &result.out);
  return result;
}

RunResult run_reference(const Case& call) {
  Case wide = call;
  wide.problem.residual_dtype = FMHC_FP64;
  wide.problem.projection = FMHC_CLASS_F;
  wide.problem.align_bytes = 0;
  wide.problem.strided = 0;
  wide.problem.batch_invariant = 0;
  wide.problem.coresident_units = 0;
  wide.problem.pdl = 0;
  return run_case(wide, {.kernel = "ref"});
}

}  // namespace fmhc::check
