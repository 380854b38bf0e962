// What verify found, for people and as JSON (docs/verify-schema.md).
#pragma once

#include "cli/verify_replay.h"

namespace fmhc::cli {

struct TraceResult {
  std::string file;
  io::TraceConstants constants;
  std::set<std::string> kernels;
  std::vector<Record> records;
  FreeRun free;

  bool passed() const;
};

// One row a layer, site and tensor; with `summary` the worst site of each tensor alone. Then the drift, and a
// line for everything that failed.
void print_result(const TraceResult& result, bool summary);

Json to_json(const std::vector<TraceResult>& results, const VerifyConfig& config);

}  // namespace fmhc::cli
