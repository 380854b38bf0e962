// The parts of `test`, and what they share.
#pragma once

#include <memory>

#include "bits.h"
#include "commands.h"

namespace fmhc_gpu {

// A device with memory and a judge, sized for the machine.
struct Bed {
  explicit Bed(const Options& options, size_t arena_bytes = size_t{1} << 30,
               size_t work_bytes = size_t{256} << 20);

  const Options& options;
  Device device;
  Arena arena;
  Judge judge;
  Clock clock;

  bool late() const { return clock.seconds() > options.seconds; }
  // Prepares; a missing kernel or a refusal goes into the figure, then it is false.
  bool ready(Figure* figure, Arena* own_arena, const CaseSpec& spec, Prepared* call);
  // Prepares, runs, compares, looks at the guards.
  void check(Figure* figure, const CaseSpec& spec);
  bool launch(Figure* figure, const Prepared& call);  // false and a failure when fmhc_run refuses
  // No unit, and all of them: kernels whose grid waits for itself take part only in the second.
  std::vector<int32_t> unit_choices() const;
};

inline constexpr int32_t kAllOps[] = {FMHC_EXPAND, FMHC_PROJECT, FMHC_FINISH, FMHC_PRE,
                                      FMHC_POST,   FMHC_SEAM,    FMHC_HEAD,   FMHC_CONTRACT};

CaseSpec make_case(int32_t op, int64_t hidden, int64_t tokens,
                   uint64_t seed);  // with engine norm where there is one
CaseSpec random_case(uint64_t seed, int64_t index, bool cuda, int32_t units);

Result test_harness(const Options& options);
Result test_fuzz(const Options& options);
Result test_edges(const Options& options);
Result test_large(const Options& options);
Result test_views(const Options& options);
Result test_invariant(const Options& options);
Result test_repeat(const Options& options);
Result test_isolation(const Options& options);
Result test_streams(const Options& options);
Result test_tokens(const Options& options);
Result test_first(const Options& options);
Result test_busy(const Options& options);
Result test_graph(const Options& options);
Result test_empty(const Options& options);
Result test_pdl(const Options& options);
Result test_memory(const Options& options);
Result test_devices(const Options& options);
Result test_sticky(const Options& options);
Result test_pending(const Options& options);

// For parts that only a GPU can show.
Result not_on_cpu(const Options& options, const char* name);

}  // namespace fmhc_gpu
