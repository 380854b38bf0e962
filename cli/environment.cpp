#include "cli/environment.h"

#include <unistd.h>

#include <sstream>

namespace fmhc::cli {
namespace {

constexpr Variable kVariables[] = {
    {"FLASHMHC_BACKEND", "auto|cuda|cpu|ref", true, "tool, Python",
     "backend to use where none is named; auto lets the planner choose"},
    {"FLASHMHC_STRICT", "0|1", true, "tool, Python",
     "1: an unknown FLASHMHC_* name, or a named backend that cannot serve, is an error and no fallback"},
    {"FLASHMHC_SGLANG", "off|auto|strict", true, "SGLang plugin",
     "whether SGLang's hyper-connections run through this library"},
    {"FLASHMHC_VLLM", "off|auto|strict", true, "vLLM plugin",
     "whether vLLM's hyper-connections run through this library"},
    {"FLASHMHC_LOG", "off|info|debug", true, "Python", "how much is logged"},
    {"FLASHMHC_LOG_FILE", "a path", false, "Python",
     "file that the log is appended to; standard error if unset"},
    {"FLASHMHC_CPU_TARGET", "sse4|avx2|avx3|avx3_dl|neon", true, "tool, Python",
     "SIMD target of the CPU backend; unset: the best that the machine has"},
    {"FLASHMHC_BATCH_INVARIANT", "0|1", true, "tool, Python",
     "1: plans are made batch-invariant: a token's bits do not depend on the batch"},
    {"FLASHMHC_NVTX", "0|1", true, "Python", "1: mark operators as NVTX ranges"},
    {"FLASHMHC_STATUS_DIR", "a directory", false, "Python", "where each process leaves its status as JSON"},
};

constexpr const char* kPrefix = "FLASHMHC_";

bool accepts(const Variable& variable, const std::string& value) {
  if (!variable.closed || value.empty()) return true;
  std::istringstream words(variable.accepted);
  for (std::string word; std::getline(words, word, '|');) {
    if (word == value) return true;
  }
  return false;
}

}  // namespace

std::span<const Variable> variables() {
  return kVariables;
}

Environment::Environment(const std::vector<std::string>& lines) : values_(std::size(kVariables)) {
  for (const std::string& line : lines) {
    if (!line.starts_with(kPrefix)) continue;
    const std::string name = line.substr(0, line.find('='));
    const std::string given = name.size() == line.size() ? "" : line.substr(name.size() + 1);
    bool known = false;
    for (size_t index = 0; index < values_.size(); ++index) {
      if (name != kVariables[index].name) continue;
      known = true;
      values_[index] = given;
      if (!accepts(kVariables[index], given)) {
        bad_.push_back(name + " is \"" + given + "\"; accepted: " + kVariables[index].accepted);
      }
    }
    if (!known) unknown_.push_back(name + " is not a variable of FlashMHC; `flashmhc info` lists all");
  }
}

Environment Environment::of_this_process() {
  std::vector<std::string> lines;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) lines.emplace_back(*line);
  return Environment(lines);
}

const std::string& Environment::value(const std::string& name) const {
  static const std::string kNone;
  for (size_t index = 0; index < values_.size(); ++index) {
    if (name == kVariables[index].name) return values_[index];
  }
  return kNone;
}

std::string Environment::kernel_prefix() const {
  const std::string& backend = value("FLASHMHC_BACKEND");
  const std::string& target = value("FLASHMHC_CPU_TARGET");
  if (backend.empty() || backend == "auto") return target.empty() ? "" : "cpu." + target;
  return backend == "cpu" && !target.empty() ? "cpu." + target : backend;
}

}  // namespace fmhc::cli
