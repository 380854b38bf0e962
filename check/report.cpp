#include "check/report.h"

#include <algorithm>
#include <cstdio>

namespace fmhc::check {

bool TensorReport::passed() const {
  return failed_rule() == nullptr;
}

const char* TensorReport::failed_rule() const {
  const auto failed =
      std::find_if(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return !o.holds; });
  return failed == outcomes.end() ? nullptr : failed->rule;
}

std::vector<int64_t> TensorReport::worst_index() const {
  std::vector<int64_t> index(worst < 0 ? 0 : shape.size());
  int64_t rest = worst;
  for (size_t axis = index.size(); axis-- > 0; rest /= shape[axis]) index[axis] = rest % shape[axis];
  return index;
}

std::string TensorReport::text() const {
  std::string place;
  for (const int64_t i : worst_index()) {
    if (!place.empty()) place += ", ";
    place += std::to_string(i);
  }
  char numbers[256];
  std::snprintf(numbers, sizeof numbers, "]: got %.9g, wanted %.9g, off by %.3g, bound %.3g", got, wanted,
                got - wanted, bound);
  std::string line = tensor + "[" + place + numbers;
  for (const Outcome& outcome : outcomes) {
    if (outcome.holds) continue;
    std::snprintf(numbers, sizeof numbers, "; %s: %.4g, limit %.4g", outcome.rule, outcome.measured,
                  outcome.limit);
    line += numbers;
  }
  return line;
}

bool Report::passed() const {
  return error.empty() && !tensors.empty() &&
         std::all_of(tensors.begin(), tensors.end(), [](const TensorReport& t) { return t.passed(); });
}

const TensorReport* Report::find(const std::string& tensor) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const TensorReport& t) { return t.tensor == tensor; });
  return found == tensors.end() ? nullptr : &*found;
}

std::string Report::text() const {
  std::string lines = error;
  for (const TensorReport& report : tensors) {
    if (report.passed()) continue;
    if (!lines.empty()) lines += '\n';
    lines += report.text();
  }
  return lines;
}

}  // namespace fmhc::check
