// Options that describe a problem, a target and a choice of kernel, shared by the subcommands that plan.
#pragma once

#include "cli/console.h"
#include "cli/environment.h"

namespace fmhc::cli {

// Names of an enumeration of the library, for options and output.
struct Named {
  const char* name;
  int32_t value;
};
std::span<const Named> op_names();
std::span<const Named> dtype_names();
std::span<const Named> class_names();
std::span<const Named> norm_names();
std::span<const Named> split_policy_names();

const char* name_of(std::span<const Named> names, int32_t value);  // "unknown" for none
int32_t value_of(std::span<const Named> names, const std::string& name, const char* option);

struct ProblemOptions {
  std::string op = "pre", model = "deepseek_v4", dtype = "bf16", projection = "F", norm = "none";
  int32_t streams = 4, align_bytes = 16, coresident_units = 0;
  int64_t hidden = 4096, tokens = 1;
  bool batch_invariant = false, carried_pre = false, strided = false, pdl = false;

  void add_to(CLI::App& app, const Environment& environment);
  void add_model_to(CLI::App& app, const Environment& environment);  // all but op, hidden and tokens
  // max_tokens is `tokens`. Options that an operator does not have are refused by the library, not dropped
  // here.
  fmhc_problem problem() const;
};

// Without a name: this machine's CPU, or with units an H200 of that many multiprocessors.
struct TargetOptions {
  std::string name;
  int32_t units = 0;

  void add_to(CLI::App& app);
  fmhc_target target() const;
};

struct HintOptions {
  std::string kernel, split_k;

  void add_to(CLI::App& app, const Environment& environment);
  // Points into this object.
  fmhc_hints hints() const;
};

// fmhc_plan_explain, parsed.
Json explain_plan(const fmhc_problem& problem, const fmhc_target& target, const fmhc_hints& hints);

}  // namespace fmhc::cli
