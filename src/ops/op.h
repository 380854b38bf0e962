// What an operator is: its tensors, the options it takes, and the least work it can do. One OpSpec per
// operator, one file each; nothing here touches data or knows a kernel.
#pragma once

#include <cstdint>
#include <span>

#include "ops/slots.h"

namespace fmhc {

using Problem = fmhc_problem;  // full size, validated by check_problem

enum class Dim : uint8_t {
  kNone,
  kTokens,
  kStreams,
  kHidden,
  kFlat,
  kLogits,
  kSplits,
  kOne,
  kThree,
  kPackedBytes
};

enum class DtypeRule : uint8_t { kResidual, kCoefficient, kFp32, kNormWeight, kBytes };

// Wide tensors are walked along a contiguous last axis and keep the promised alignment; small ones take any
// strides once the problem says strided.
enum class Layout : uint8_t { kWide, kSmall };

enum class Use : uint8_t {
  kYes,
  kMay,               // optional
  kIfCarried,         // required with carried_pre, else unused
  kIfCarriedElseMay,  // required with carried_pre, else optional
  kIfNorm,            // required when norm is not none, else unused
  kIfPacked,          // required when the plan packs fn, else unused
};

struct TensorSpec {
  Slot slot;
  Use use;
  DtypeRule dtype;
  Layout layout;
  uint8_t rank;
  Dim dims[4];
};

// The least bytes that must cross the memory bus and the arithmetic, for `tokens` tokens.
struct Traffic {
  double token_bytes;   // all tensors that grow with the tokens, each visited once
  double weight_bytes;  // fn, scale, base, norm weight
  double flops;
};

struct OpSpec {
  int32_t op;
  const char* name;
  bool projects;   // reads fn: the numerics class applies
  bool collapses;  // makes a layer input: norm and carried_pre apply
  bool may_carry;
  bool in_place;  // residual_out may be residual
  std::span<const TensorSpec> tensors;
};

// In which form a run reads fn. A plan may pack it for some token counts and read it as it is for others.
enum class Weights : uint8_t {
  kRaw,           // the plan does not pack
  kPacked,        // this run reads fn_packed
  kRawOfPacking,  // the plan packs, but not for this run
};

// nullptr for an unknown operator.
const OpSpec* find_op(int32_t op);
std::span<const OpSpec* const> all_ops();

constexpr int64_t logit_count(const Problem& problem) {
  const int64_t n = problem.streams;
  return problem.op == FMHC_HEAD ? n : n * (2 + n);
}

constexpr int64_t flat_width(const Problem& problem) {
  return problem.hidden * problem.streams;
}

// The extent of a dimension; kSplits is free (-1) where the caller chooses it.
int64_t extent(Dim dim, const Problem& problem, int64_t tokens, int64_t splits, int64_t packed_bytes);

bool uses(const TensorSpec& spec, const Problem& problem, Weights weights);
bool requires_tensor(const TensorSpec& spec, const Problem& problem, Weights weights);
int32_t required_dtype(DtypeRule rule, const Problem& problem);

// Ideal traffic, derived from the tensor table: every tensor once, and the arithmetic of section "cost" in
// docs/operators.md.
Traffic ideal_traffic(const Problem& problem, int64_t tokens);

}  // namespace fmhc
