// One call of the library with every tensor placed on purpose: random row strides, in place, a broadcast
// stream, or ending at an unmapped page. Whatever is not an element is filled with NaN bytes, and must still
// be after the call; outputs are NaN before it.
#pragma once

#include <string>
#include <vector>

#include "check/tensors.h"

namespace fmhc::ops_test {

struct Placement {
  const char* kernel = nullptr;
  const fmhc_executor* executor = nullptr;
  uint64_t stride_seed = 0;  // 0: packed
  bool in_place = false;     // residual_out is residual
  bool broadcast = false;    // residual has stream stride 0; its streams must be equal
  bool at_page_end = false;  // each tensor and the scratch end at an unmapped page
  // Where not null: the residual goes here, rows this many elements apart; nothing around it is checked.
  void* residual_memory = nullptr;
  int64_t residual_token_stride = 0;
};

struct Outcome {
  int32_t code = FMHC_OK;
  std::string text;    // of the diag
  std::string damage;  // the first tensor with a byte changed outside its elements; empty: none
  check::Tensors out;
};

Outcome run_call(const check::Case& call, const Placement& placement);

// Prefixes of the SIMD targets that this machine runs: "cpu.avx3", ...
std::vector<std::string> runnable_targets();

// The tensors hold the same bits. `where` gets the first difference.
bool same_bits(const check::Tensors& a, const check::Tensors& b, std::string* where);

// The given tokens of every tensor that has them.
check::Case pick_tokens(const check::Case& call, const std::vector<int64_t>& tokens);
check::Tensors pick_outputs(const check::Case& call, const check::Tensors& out,
                            const std::vector<int64_t>& tokens);

}  // namespace fmhc::ops_test
