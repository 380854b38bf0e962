// flashmhc.hpp - C++20 over flashmhc.h: values and a Result instead of out-parameters and codes.
//
// Header-only, without exceptions and allocations; nothing here owns memory. The structs of the C interface
// are used as they are, so that every field of flashmhc.h is at hand.
//
//   auto target = flashmhc::query_target(FMHC_CPU);
//   auto problem = flashmhc::make_problem("deepseek_v4", FMHC_PRE, {4, 4096, max_tokens, FMHC_BF16});
//   auto plan = flashmhc::Plan::make(*problem, *target);        // each converts to false on failure
//   if (!plan) return plan.status().text();
#ifndef FLASHMHC_HPP_
#define FLASHMHC_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "flashmhc/flashmhc.h"

namespace flashmhc {

// FMHC_OK, or a code and the text that names the argument.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(int32_t code, const fmhc_diag& diag) : diag_(diag) { diag_.code = code; }

  constexpr bool ok() const { return diag_.code == FMHC_OK; }
  constexpr explicit operator bool() const { return ok(); }
  constexpr int32_t code() const { return diag_.code; }
  const char* code_name() const { return fmhc_code_name(diag_.code); }
  constexpr std::string_view text() const { return diag_.text; }  // valid as long as the Status

 private:
  fmhc_diag diag_{};
};

// A T, or why there is none. Reading the value of a failed Result gives a value-initialised T.
template <typename T>
class [[nodiscard]] Result {
 public:
  constexpr Result(const T& value) : value_(value) {}
  constexpr Result(const Status& failure) : status_(failure) {}

  constexpr bool ok() const { return status_.ok(); }
  constexpr explicit operator bool() const { return ok(); }
  constexpr const Status& status() const { return status_; }
  constexpr T& operator*() { return value_; }
  constexpr const T& operator*() const { return value_; }
  constexpr T* operator->() { return &value_; }
  constexpr const T* operator->() const { return &value_; }

 private:
  Status status_{};
  T value_{};
};

// A zeroed struct of the C interface with its struct_size: fmhc_args, fmhc_problem, fmhc_hints, ...
template <typename T>
constexpr T sized() {
  T value{};
  value.struct_size = static_cast<uint32_t>(sizeof(T));
  return value;
}

namespace detail {

template <typename Tensor>
constexpr Tensor packed(Tensor tensor, fmhc_dtype dtype, std::initializer_list<int64_t> shape) {
  tensor.rank = static_cast<int32_t>(shape.size());  // above 4 the library refuses it by name
  tensor.dtype = dtype;
  const int kept = tensor.rank < 4 ? tensor.rank : 4;
  int64_t stride = 1;
  for (int axis = kept - 1; axis >= 0; --axis) {
    const int64_t extent = *(shape.begin() + axis);
    tensor.shape[axis] = extent;
    tensor.stride[axis] = stride;
    stride *= extent > 0 ? extent : 1;
  }
  return tensor;
}

template <typename T, typename Call>
Result<T> filled(Call&& call) {
  T value = sized<T>();
  fmhc_diag diag{};
  const int32_t code = call(&value, &diag);
  if (code != FMHC_OK) return Status(code, diag);
  return value;
}

template <typename Call>
Status checked(Call&& call) {
  fmhc_diag diag{};
  const int32_t code = call(&diag);
  return Status(code, diag);
}

}  // namespace detail

// Packed tensors, the last axis contiguous; change `stride` afterwards for views.
constexpr fmhc_in make_in(const void* data, fmhc_dtype dtype, std::initializer_list<int64_t> shape) {
  return detail::packed(fmhc_in{data, {}, {}, 0, 0}, dtype, shape);
}

constexpr fmhc_out make_out(void* data, fmhc_dtype dtype, std::initializer_list<int64_t> shape) {
  return detail::packed(fmhc_out{data, {}, {}, 0, 0}, dtype, shape);
}

inline Result<fmhc_target> query_target(fmhc_device kind, int32_t index = 0) {
  return detail::filled<fmhc_target>(
      [&](fmhc_target* out, fmhc_diag* diag) { return fmhc_target_query(kind, index, out, diag); });
}

inline Result<fmhc_target> named_target(const char* name) {
  return detail::filled<fmhc_target>(
      [&](fmhc_target* out, fmhc_diag* diag) { return fmhc_target_named(name, out, diag); });
}

struct Shape {
  int32_t streams;
  int64_t hidden;
  int64_t max_tokens;
  fmhc_dtype residual_dtype;
};

// A packed problem of numerics class F without a norm, with the constants of a model of fmhc_preset.
// carried_pre follows the model in the operators that take it.
inline Result<fmhc_problem> make_problem(const char* model, fmhc_op op, const Shape& shape) {
  return detail::filled<fmhc_problem>([&](fmhc_problem* out, fmhc_diag* diag) {
    out->op = op;
    out->streams = shape.streams;
    out->residual_dtype = shape.residual_dtype;
    out->projection = FMHC_CLASS_F;
    out->hidden = shape.hidden;
    out->max_tokens = shape.max_tokens;
    const int32_t code = fmhc_preset(model, out, diag);
    const bool carries = op == FMHC_FINISH || op == FMHC_PRE || op == FMHC_SEAM || op == FMHC_CONTRACT;
    if (!carries) out->carried_pre = 0;
    return code;
  });
}

inline Status supported(const fmhc_problem& problem, const fmhc_target& target,
                        const fmhc_hints* hints = nullptr) {
  return detail::checked([&](fmhc_diag* diag) { return fmhc_supported(&problem, &target, hints, diag); });
}

// A value like the fmhc_plan inside: copy it, share it between threads.
class Plan {
 public:
  Plan() = default;

  static Result<Plan> make(const fmhc_problem& problem, const fmhc_target& target,
                           const fmhc_hints* hints = nullptr) {
    Plan plan;
    const Status status = detail::checked(
        [&](fmhc_diag* diag) { return fmhc_plan_make(&problem, &target, hints, &plan.plan_, diag); });
    if (!status) return status;
    return plan;
  }

  size_t scratch_bytes() const { return fmhc_plan_scratch(&plan_); }
  size_t state_bytes() const { return fmhc_plan_state(&plan_); }
  size_t packed_bytes() const { return fmhc_plan_packed(&plan_); }
  int32_t split_k(int64_t tokens) const { return fmhc_plan_split_k(&plan_, tokens); }
  const char* kernel(int64_t tokens) const { return fmhc_plan_kernel(&plan_, tokens); }  // NULL: invalid

  Status init_state(void* state, size_t bytes, void* stream = nullptr) const {
    return detail::checked(
        [&](fmhc_diag* diag) { return fmhc_state_init(&plan_, state, bytes, stream, diag); });
  }

  // fn [N,K] fp32 -> packed [packed_bytes()]
  Status prepare(const fmhc_in& fn, void* packed, size_t bytes, void* stream = nullptr) const {
    return detail::checked(
        [&](fmhc_diag* diag) { return fmhc_prepare(&plan_, &fn, packed, bytes, stream, diag); });
  }

  Status run(const fmhc_args& args) const {
    return detail::checked([&](fmhc_diag* diag) { return fmhc_run(&plan_, &args, diag); });
  }

  const fmhc_plan& c_plan() const { return plan_; }

 private:
  fmhc_plan plan_{};
};

}  // namespace flashmhc

#endif  // FLASHMHC_HPP_
