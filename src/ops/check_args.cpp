#include "ops/check_args.h"

#include <cinttypes>
#include <cstdio>

#include "core/dtype.h"
#include "core/math.h"
#include "core/status.h"
#include "ops/overlap.h"
#include "ops/slices.h"

namespace fmhc {
namespace {

constexpr uintptr_t kMemoryAlignment = 256;  // of scratch and state

struct Expected {
  const Problem& problem;
  const OpSpec& op;
  int64_t tokens;
  int64_t splits;
  size_t packed_bytes;
  Weights weights;
};

const TensorSpec* find_spec(const OpSpec& op, Slot slot) {
  for (const TensorSpec& spec : op.tensors) {
    if (spec.slot == slot) return &spec;
  }
  return nullptr;
}

int32_t check_shape(const Expected& expected, const TensorSpec& spec, const fmhc_in& tensor,
                    fmhc_diag* diag) {
  const char* name = slot_name(spec.slot);
  if (tensor.rank != spec.rank) {
    return fail(diag, FMHC_INVALID, "%s.rank is %d; %s takes rank %d", name, tensor.rank, expected.op.name,
                spec.rank);
  }
  for (int axis = 0; axis < spec.rank; ++axis) {
    const int64_t want = extent(spec.dims[axis], expected.problem, expected.tokens, expected.splits,
                                static_cast<int64_t>(expected.packed_bytes));
    if (tensor.shape[axis] != want) {
      return fail(diag, FMHC_INVALID, "%s.shape[%d] is %" PRId64 "; expected %" PRId64, name, axis,
                  tensor.shape[axis], want);
    }
  }
  return FMHC_OK;
}

int32_t check_strides(const Expected& expected, const TensorSpec& spec, const fmhc_in& tensor,
                      fmhc_diag* diag) {
  const char* name = slot_name(spec.slot);
  int64_t packed = 1;
  for (int axis = spec.rank - 1; axis >= 0; --axis) {
    const int64_t stride = tensor.stride[axis];
    const bool innermost = axis == spec.rank - 1;
    if (tensor.shape[axis] > 1) {
      if (innermost && spec.layout == Layout::kWide && stride != 1) {
        return fail(diag, FMHC_INVALID, "%s.stride[%d] is %" PRId64 "; the last axis must have stride 1",
                    name, axis, stride);
      }
      if (stride < 0) {
        return fail(diag, FMHC_INVALID, "%s.stride[%d] is %" PRId64 "; accepted: >= 0", name, axis, stride);
      }
      if (expected.problem.strided == 0 && stride != packed) {
        return fail(diag, FMHC_INVALID,
                    "%s.stride[%d] is %" PRId64 "; expected %" PRId64 " (problem.strided is 0)", name, axis,
                    stride, packed);
      }
    }
    packed *= max64(tensor.shape[axis], 1);
  }
  int64_t span = 0;
  if (!byte_span(tensor, &span)) return fail(diag, FMHC_INVALID, "%s spans more than 2^63 bytes", name);
  if (is_output(spec.slot) && overlaps_itself(tensor)) {
    return fail(diag, FMHC_INVALID,
                "%s: its strides make elements overlap; an output needs one place an element", name);
  }
  return FMHC_OK;
}

// What problem.align_bytes promises of a tensor: the wide ones in storage dtype as it says; of packed
// problems also the operands that kernels read in 16-byte pieces.
int32_t promised_alignment(const Problem& problem, const TensorSpec& spec) {
  if (spec.layout == Layout::kWide && spec.dtype == DtypeRule::kResidual) return problem.align_bytes;
  const bool operand = spec.slot == Slot::kFn || spec.slot == Slot::kPostIn || spec.slot == Slot::kCombIn;
  return problem.strided == 0 && operand && problem.align_bytes >= 16 ? 16 : 0;
}

int32_t check_alignment(const Expected& expected, const TensorSpec& spec, const fmhc_in& tensor,
                        fmhc_diag* diag) {
  const int32_t element = dtype_bytes(tensor.dtype) > 1 ? dtype_bytes(tensor.dtype) : 1;
  const int32_t promised = promised_alignment(expected.problem, spec);
  const int32_t align = promised > element ? promised : element;
  if (reinterpret_cast<uintptr_t>(tensor.data) % static_cast<uintptr_t>(align) != 0) {
    return fail(diag, FMHC_INVALID, "%s.data is %p; expected a multiple of %d bytes", slot_name(spec.slot),
                tensor.data, align);
  }
  for (int axis = 0; spec.layout == Layout::kWide && promised > 0 && axis + 1 < spec.rank; ++axis) {
    if (tensor.shape[axis] > 1 && tensor.stride[axis] * element % align != 0) {
      return fail(diag, FMHC_INVALID,
                  "%s.stride[%d] is %" PRId64 " elements; expected a multiple of %d bytes",
                  slot_name(spec.slot), axis, tensor.stride[axis], align);
    }
  }
  return FMHC_OK;
}

int32_t check_tensor(const Expected& expected, const TensorSpec& spec, const fmhc_in& tensor,
                     fmhc_diag* diag) {
  const char* name = slot_name(spec.slot);
  if (is_absent(tensor)) {
    if (!requires_tensor(spec, expected.problem, expected.weights)) return FMHC_OK;
    return fail(diag, FMHC_INVALID, "%s is absent; %s needs it", name, expected.op.name);
  }
  const int32_t dtype = required_dtype(spec.dtype, expected.problem);
  if (tensor.dtype != dtype) {
    return fail(diag, FMHC_INVALID, "%s.dtype is %s (%d); expected %s", name, dtype_name(tensor.dtype),
                tensor.dtype, dtype == 0 ? "0 (bytes)" : dtype_name(dtype));
  }
  FMHC_TRY(check_shape(expected, spec, tensor, diag));
  if (tensor.data == nullptr && expected.tokens > 0) {
    return fail(diag, FMHC_INVALID, "%s.data is NULL; %s needs it", name, expected.op.name);
  }
  FMHC_TRY(check_strides(expected, spec, tensor, diag));
  return check_alignment(expected, spec, tensor, diag);
}

int32_t check_unused(const Expected& expected, const fmhc_args& args, fmhc_diag* diag) {
  for (int index = 0; index < kSlotCount; ++index) {
    const auto slot = static_cast<Slot>(index);
    const TensorSpec* spec = find_spec(expected.op, slot);
    if (spec != nullptr && uses(*spec, expected.problem, expected.weights)) continue;
    if (!is_absent(read_slot(args, slot))) {
      return fail(diag, FMHC_INVALID,
                  "%s is given; %s does not use it with these options: expected NULL and rank 0",
                  slot_name(slot), expected.op.name);
    }
  }
  return FMHC_OK;
}

int32_t check_memory(const char* name, const void* data, size_t given, size_t needed, fmhc_diag* diag) {
  if (needed == 0) return FMHC_OK;
  if (data == nullptr) return fail(diag, FMHC_INVALID, "%s is NULL; expected %zu bytes", name, needed);
  if (reinterpret_cast<uintptr_t>(data) % kMemoryAlignment != 0) {
    return fail(diag, FMHC_INVALID, "%s is %p; expected a multiple of 256 bytes", name, data);
  }
  if (given < needed)
    return fail(diag, FMHC_INVALID, "%s_bytes is %zu; expected at least %zu", name, given, needed);
  return FMHC_OK;
}

int32_t check_threads(int32_t device_kind, const fmhc_args& args, fmhc_diag* diag) {
  if (device_kind == FMHC_CPU && args.stream != nullptr) {
    return fail(diag, FMHC_INVALID, "stream is %p; the CPU has none: expected NULL", args.stream);
  }
  if (args.executor == nullptr) return FMHC_OK;
  if (args.executor->parallel_for == nullptr) {
    return fail(diag, FMHC_INVALID, "executor.parallel_for is NULL; accepted: a function, or no executor");
  }
  if (args.executor->threads < 1) {
    return fail(diag, FMHC_INVALID, "executor.threads is %d; accepted: >= 1", args.executor->threads);
  }
  return FMHC_OK;
}

fmhc_in memory_as_tensor(const void* data, size_t bytes) {
  return {data, {static_cast<int64_t>(bytes)}, {1}, bytes == 0 ? 0 : 1, 0};
}

// Outputs may touch nothing else of the call, but for the documented in-place form.
int32_t check_overlap(const Expected& expected, const PlanNeeds& needs, const fmhc_args& args,
                      fmhc_diag* diag) {
  const fmhc_in memory[] = {memory_as_tensor(args.scratch, needs.scratch_bytes),
                            memory_as_tensor(args.state, needs.state_bytes)};
  const char* const memory_names[] = {"scratch", "state"};
  for (const TensorSpec& spec : expected.op.tensors) {
    const fmhc_in tensor = read_slot(args, spec.slot);
    for (int block = 0; block < 2; ++block) {
      if (overlaps(tensor, memory[block])) {
        return fail(diag, FMHC_INVALID, "%s overlaps %s", memory_names[block], slot_name(spec.slot));
      }
    }
    if (!is_output(spec.slot)) continue;
    for (const TensorSpec& other : expected.op.tensors) {
      if (other.slot == spec.slot || (is_output(other.slot) && other.slot < spec.slot)) continue;
      const fmhc_in second = read_slot(args, other.slot);
      if (!overlaps(tensor, second)) continue;
      const bool legal = expected.op.in_place && spec.slot == Slot::kResidualOut &&
                         other.slot == Slot::kResidual && same_tensor(tensor, second);
      if (!legal) {
        return fail(diag, FMHC_INVALID, "%s overlaps %s; accepted: separate memory%s", slot_name(spec.slot),
                    slot_name(other.slot),
                    expected.op.in_place ? ", or residual_out equal to residual in address and strides" : "");
      }
    }
  }
  if (needs.scratch_bytes > 0 && overlaps(memory[0], memory[1])) {
    return fail(diag, FMHC_INVALID, "scratch overlaps state");
  }
  return FMHC_OK;
}

}  // namespace

int32_t read_tokens(const Problem& problem, const fmhc_args& args, int64_t* tokens, fmhc_diag* diag) {
  const OpSpec& op = *find_op(problem.op);
  const TensorSpec& spec = *find_spec(op, Slot::kResidual);
  const fmhc_in tensor = args.residual;
  if (is_absent(tensor)) return fail(diag, FMHC_INVALID, "residual is absent; %s needs it", op.name);
  if (tensor.rank != spec.rank) {
    return fail(diag, FMHC_INVALID, "residual.rank is %d; %s takes rank %d", tensor.rank, op.name, spec.rank);
  }
  if (tensor.shape[0] < 0 || tensor.shape[0] > problem.max_tokens) {
    return fail(diag, FMHC_INVALID, "residual.shape[0] is %" PRId64 " tokens; the plan serves 0..%" PRId64,
                tensor.shape[0], problem.max_tokens);
  }
  *tokens = tensor.shape[0];
  return FMHC_OK;
}

int32_t check_args(const Problem& problem, const PlanNeeds& needs, int64_t tokens, int32_t splits,
                   const fmhc_args& args, fmhc_diag* diag) {
  const OpSpec& op = *find_op(problem.op);
  Expected expected{problem, op, tokens, splits, needs.packed_bytes, needs.weights};
  if (op.op == FMHC_FINISH) {
    // Any count of partials from one to the number of 64-wide blocks of K is a legal input.
    const int64_t given = args.dot_mix_in.rank == 3 ? args.dot_mix_in.shape[0] : 1;
    const int64_t most = ceil_div(flat_width(problem), kSplitBlock);
    if (given < 1 || given > most) {
      return fail(diag, FMHC_INVALID, "dot_mix_in.shape[0] is %" PRId64 " partials; expected 1..%" PRId64,
                  given, most);
    }
    expected.splits = given;
  }
  if (args.flags != 0) return fail(diag, FMHC_INVALID, "args.flags is %u; expected 0", args.flags);
  for (const TensorSpec& spec : op.tensors) {
    if (uses(spec, problem, expected.weights)) {
      FMHC_TRY(check_tensor(expected, spec, read_slot(args, spec.slot), diag));
    }
  }
  FMHC_TRY(check_unused(expected, args, diag));
  FMHC_TRY(check_threads(needs.device_kind, args, diag));
  if (tokens == 0) return FMHC_OK;
  FMHC_TRY(check_memory("scratch", args.scratch, args.scratch_bytes, needs.scratch_bytes, diag));
  FMHC_TRY(check_memory("state", args.state, args.state_bytes, needs.state_bytes, diag));
  return check_overlap(expected, needs, args, diag);
}

int32_t check_weight(const Problem& problem, const fmhc_in& fn, fmhc_diag* diag) {
  const OpSpec& op = *find_op(problem.op);
  const TensorSpec* spec = find_spec(op, Slot::kFn);
  if (spec == nullptr) return fail(diag, FMHC_INVALID, "%s has no fn", op.name);
  return check_tensor({problem, op, 1, 1, 0, Weights::kRaw}, *spec, fn, diag);
}

}  // namespace fmhc
