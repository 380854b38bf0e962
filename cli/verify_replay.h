// The replay of a trace. Teacher-forced: every site gets its recorded residual, sublayer output and carried
// mix, so that an error is seen where it is made. Free-running: every site gets what the replay itself made,
// so that errors which add up are seen.
#pragma once

#include <set>

#include "check/check.h"
#include "cli/verify_limits.h"
#include "cli/verify_trace.h"

namespace fmhc::cli {

// What a tensor was compared with.
enum class Against : uint8_t {
  kOracle,    // backend ref in fp64, same inputs
  kRecorded,  // the trace
  kComposed,  // the seam with its two halves run apart
  kChain,     // the recorded residual that enters a step with the one that left the step before
};
const char* against_name(Against against);

struct Record {
  int64_t layer = 0;
  std::string site;  // "entry", "attn", "ffn", "exit"
  Against against = Against::kOracle;
  check::TensorReport report;
  std::vector<Limit> limits;  // against a recording: what applied
};

struct VerifyConfig {
  std::string kernel;  // name or prefix; empty: the planner's choice
  const fmhc_executor* executor = nullptr;
  bool oracle = true, recorded = true;
  Limits limits;
};

class Replay {
 public:
  // `step` is called after each of the trace's sites and the exit.
  Replay(const TraceCalls& trace, const VerifyConfig& config, std::function<void()> step)
      : trace_(trace), config_(config), step_(std::move(step)) {}

  void run();
  const std::vector<Record>& records() const { return records_; }
  const std::set<std::string>& kernels() const { return kernels_; }

 private:
  void entry(const Values& first_residual);
  void site(const Recorded& site, const Values& mix, const Recorded* next);
  void normed(const Recorded& site, const Values& mix);
  void seam(const Case& post, const Tensors& posted, const Recorded& next, const Values& mix);
  void exit(const Values& last_residual, const Values& mix);
  Tensors call(const Case& call);
  void judge(const Recorded& at, const Case& call, const Tensors& got);
  void compare(const Recorded& at, const char* tensor, const Case& call, const Values& got,
               const Values& recorded);
  void equal(const Recorded& at, Against against, const char* tensor, const Case& call, const Values& got,
             const Values& wanted);

  const TraceCalls& trace_;
  const VerifyConfig& config_;
  std::function<void()> step_;
  std::vector<Record> records_;
  std::set<std::string> kernels_;
  std::string kernel_;  // of the call last made
};

// One layer of the free run: distances are norms of the difference over the norm of the oracle's.
struct DriftRow {
  int64_t layer = 0;      // residual behind it; the number of layers: the output
  double drift = 0;       // of the backend from the oracle
  double plain = 0;       // of plain fp32 from the oracle
  double recorded = 0;    // of the backend from the recording
  double log_growth = 0;  // log of the backend's root mean square over the oracle's
};

struct FreeRun {
  std::vector<DriftRow> rows;
  check::TensorReport alarm;  // outcomes only
};

FreeRun run_free(const TraceCalls& trace, const check::Reference& backend, const std::function<void()>& step);

// Runs `call` on the backend of the config; a refusal ends the tool.
check::RunResult run_backend(const VerifyConfig& config, const Case& call);

}  // namespace fmhc::cli
