// The tensors of one call as exact doubles, packed row-major, and the table that says which operator has
// which tensor in which shape. Written from the public header, not shared with the library.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "flashmhc/flashmhc.h"

namespace fmhc::check {

using Values = std::vector<double>;

// Empty: absent. Shapes as in fmhc_args.
struct Tensors {
  Values residual, sublayer_output, post_in, comb_in, pre_in, fn, scale, base, norm_weight, dot_mix_in,
      sqrsum_in;
  Values residual_out, layer_input, post_mix, comb_mix, pre_mix, dot_mix, sqrsum;
};

// A call, apart from where it runs. `in` holds values that the storage of the problem holds exactly.
struct Case {
  fmhc_problem problem{};
  int64_t tokens = 0;
  int64_t splits = 1;  // partials that project makes or finish takes
  Tensors in;
};

enum class Kind : uint8_t { kResidual, kCoefficient, kFp32, kNormWeight };
enum class When : uint8_t { kAlways, kCarried, kNorm, kOptional };

struct Row {
  const char* name;
  const char* dims;  // T tokens, n streams, H hidden, K = n*H, N logits, S partials, G scales
  Kind kind;
  When when;
  uint32_t ops;  // bit 1 << op
  Values Tensors::*values;
  fmhc_in fmhc_args::*in;  // one of the two is null
  fmhc_out fmhc_args::*out;
};

std::span<const Row> rows();
bool has(const Row& row, const Case& call);
std::vector<int64_t> shape_of(const Row& row, const Case& call);
int32_t dtype_of(const Row& row, const fmhc_problem& problem);
int64_t logit_count(const fmhc_problem& problem);

// A tensor with any strides, widened.
Values read_tensor(const fmhc_in& tensor);
// Everything that `problem` makes of `args`: the inputs into call->in, and the outputs. Tensors of zero
// elements stay empty.
void read_args(const fmhc_problem& problem, const fmhc_args& args, Case* call, Tensors* outputs);

}  // namespace fmhc::check
