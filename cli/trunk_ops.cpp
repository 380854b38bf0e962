#include "cli/trunk_ops.h"

#include <new>

namespace fmhc::cli {
namespace {

constexpr std::align_val_t kScratchAlign{256};

template <class View>
void set_shape(const io::HostTensor& tensor, size_t first_axis, View& view) {
  view.rank = static_cast<int32_t>(tensor.shape.size() - first_axis);
  view.dtype = storage_dtype(tensor.dtype);
  int64_t stride = 1;
  for (size_t axis = tensor.shape.size(); axis-- > first_axis;) {
    view.shape[axis - first_axis] = tensor.shape[axis];
    view.stride[axis - first_axis] = stride;
    stride *= tensor.shape[axis];
  }
}

fmhc_in view_of(const io::HostTensor& tensor, size_t first_axis) {
  fmhc_in view{};
  view.data = tensor.buffer.data();
  set_shape(tensor, first_axis, view);
  return view;
}

}  // namespace

int32_t storage_dtype(io::Dtype dtype) {
  switch (dtype) {
    case io::Dtype::kBF16:
      return FMHC_BF16;
    case io::Dtype::kF16:
      return FMHC_FP16;
    case io::Dtype::kF32:
      return FMHC_FP32;
    case io::Dtype::kF64:
      return FMHC_FP64;
    default:
      return 0;
  }
}

fmhc_in weight(const io::HostTensor& tensor) {
  return view_of(tensor, 0);
}

fmhc_in recorded(const io::HostTensor& tensor) {
  return view_of(tensor, 1);
}

fmhc_out output(io::HostTensor& tensor) {
  fmhc_out view{};
  view.data = tensor.buffer.data();
  set_shape(tensor, 1, view);
  return view;
}

TrunkOps::TrunkOps(const io::TraceConstants& constants, std::string kernel, const fmhc_executor* executor)
    : constants_(constants),
      kernel_(std::move(kernel)),
      executor_(executor),
      scratch_(nullptr, [](std::byte* p) { ::operator delete(p, kScratchAlign); }) {}

const fmhc_plan& TrunkOps::plan_for(fmhc_op op, fmhc_norm norm) {
  const auto [entry, fresh] = plans_.try_emplace({op, norm});
  if (!fresh) return entry->second;
  const io::TraceConstants& c = constants_;
  fmhc_problem problem{};
  problem.struct_size = sizeof problem;
  problem.op = op;
  problem.streams = static_cast<int32_t>(c.streams);
  problem.residual_dtype = storage_dtype(c.dtype);
  problem.projection = FMHC_CLASS_F;
  problem.norm = norm;
  problem.norm_weight_dtype = norm == FMHC_NORM_NONE ? 0 : storage_dtype(c.dtype);
  problem.carried_pre = c.carried_pre() && (op == FMHC_PRE || op == FMHC_CONTRACT);
  problem.hidden = c.hidden;
  problem.max_tokens = c.tokens;
  problem.consts = {c.rms_norm_eps, c.hc_eps, c.hc_eps, c.post_mult, c.rms_norm_eps, c.sinkhorn_iters};
  fmhc_target target{};
  target.struct_size = sizeof target;
  fmhc_diag diag{};
  require_ok(fmhc_target_query(FMHC_CPU, 0, &target, &diag), diag);
  if (executor_ != nullptr) target.num_units = executor_->threads;
  fmhc_hints hints{};
  hints.struct_size = sizeof hints;
  hints.kernel = kernel_.empty() ? nullptr : kernel_.c_str();
  require_ok(fmhc_plan_make(&problem, &target, &hints, &entry->second, &diag), diag);
  if (const size_t bytes = fmhc_plan_scratch(&entry->second); bytes > scratch_bytes_) {
    scratch_.reset(static_cast<std::byte*>(::operator new(bytes, kScratchAlign)));
    scratch_bytes_ = bytes;
  }
  return entry->second;
}

void TrunkOps::run(fmhc_op op, fmhc_args args, fmhc_norm norm) {
  const fmhc_plan& plan = plan_for(op, norm);
  args.struct_size = sizeof args;
  args.scratch = scratch_.get();
  args.scratch_bytes = scratch_bytes_;
  args.executor = executor_;
  fmhc_diag diag{};
  require_ok(fmhc_run(&plan, &args, &diag), diag);
}

}  // namespace fmhc::cli
