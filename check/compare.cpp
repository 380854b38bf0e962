#include "check/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fmhc::check {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Gathers errors element by element.
class Gather {
 public:
  explicit Gather(TensorReport* report) : report_(*report) {}

  void finite(int64_t i, double got, double wanted, double bound, bool within) {
    const double error = std::fabs(got - wanted);
    const double ratio = error == 0 ? 0 : error / bound;
    report_.max_abs = std::max(report_.max_abs, error);
    squares_ += error * error;
    wanted_squares_ += wanted * wanted;
    note(i, got, wanted, bound, within ? std::min(ratio, 1.0) : std::max(ratio, 1.0), within);
  }

  // Either side is NaN or infinite.
  void special(int64_t i, double got, double wanted) {
    const bool same = (std::isnan(got) && std::isnan(wanted)) || got == wanted;
    if (!same) ++mask_;
    note(i, got, wanted, 0, same ? 0 : kInfinity, same);
  }

  void finish(const char* rule) {
    finish_mask();
    const int64_t beyond = report_.violations - mask_;
    report_.outcomes.push_back({rule, report_.ratio, 1, beyond == 0});
  }

  void finish_norm(double limit) {
    finish_mask();
    report_.bound = limit;
    report_.ratio = report_.relative_norm == 0 ? 0 : report_.relative_norm / limit;
    report_.outcomes.push_back(
        {"relative norm", report_.relative_norm, limit, report_.relative_norm <= limit});
  }

 private:
  void finish_mask() {
    report_.relative_norm = wanted_squares_ > 0 ? std::sqrt(squares_ / wanted_squares_)
                            : squares_ > 0      ? kInfinity
                                                : 0;
    report_.outcomes.push_back({"nan and infinity", static_cast<double>(mask_), 0, mask_ == 0});
  }

  void note(int64_t i, double got, double wanted, double bound, double ratio, bool within) {
    ++report_.count;
    // A violation outranks every element within its bound.
    const bool first = !within && report_.violations == 0;
    if (!within) ++report_.violations;
    const bool comparable = !within || report_.violations == 0;
    if (report_.worst >= 0 && !first && !(comparable && ratio > report_.ratio)) return;
    report_.worst = i;
    report_.got = got;
    report_.wanted = wanted;
    report_.bound = bound;
    report_.ratio = ratio;
  }

  TensorReport& report_;
  double squares_ = 0, wanted_squares_ = 0;
  int64_t mask_ = 0;
};

bool sizes_match(const Values& got, const Values& wanted, TensorReport* report) {
  if (got.size() == wanted.size()) return true;
  report->outcomes.push_back(
      {"element count", static_cast<double>(got.size()), static_cast<double>(wanted.size()), false});
  return false;
}

template <class Check>
void compare(const Values& got, const Values& wanted, const char* rule, TensorReport* report,
             const Check& check) {
  if (!sizes_match(got, wanted, report)) return;
  Gather gather(report);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (std::isfinite(got[i]) && std::isfinite(wanted[i])) {
      check(gather, i, at);
    } else {
      gather.special(at, got[i], wanted[i]);
    }
  }
  gather.finish(rule);
}

}  // namespace

TensorReport start_report(const char* tensor, const Case& call) {
  TensorReport report;
  report.tensor = tensor;
  for (const Row& row : rows()) {
    if (report.tensor == row.name && has(row, call)) report.shape = shape_of(row, call);
  }
  return report;
}

void compare_bound(const Values& got, const Values& wanted, const Values& bound, TensorReport* report) {
  compare(got, wanted, "bound", report, [&](Gather& gather, size_t i, int64_t at) {
    gather.finite(at, got[i], wanted[i], bound[i], std::fabs(got[i] - wanted[i]) <= bound[i]);
  });
}

void compare_interval(const Values& got, const Values& wanted, const Values& low, const Values& high,
                      TensorReport* report) {
  // A value may round to infinity, so infinite results are compared here as well.
  if (!sizes_match(got, wanted, report)) return;
  Gather gather(report);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const bool within = low[i] <= got[i] && got[i] <= high[i];
    if (std::isfinite(got[i]) && std::isfinite(wanted[i])) {
      const double reach = got[i] >= wanted[i] ? high[i] - wanted[i] : wanted[i] - low[i];
      gather.finite(at, got[i], wanted[i], std::fabs(reach), within);
    } else {
      gather.special(at, got[i], within ? got[i] : wanted[i]);
    }
  }
  gather.finish("containment");
}

void compare_norm(const Values& got, const Values& wanted, double limit, TensorReport* report) {
  if (!sizes_match(got, wanted, report)) return;
  constexpr double kAny = std::numeric_limits<double>::max();
  Gather gather(report);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (std::isfinite(got[i]) && std::isfinite(wanted[i])) {
      gather.finite(at, got[i], wanted[i], kAny, true);
    } else {
      gather.special(at, got[i], wanted[i]);
    }
  }
  gather.finish_norm(limit);
}

void compare_equal(const Values& got, const Values& wanted, TensorReport* report) {
  compare(got, wanted, "equal", report, [&](Gather& gather, size_t i, int64_t at) {
    gather.finite(at, got[i], wanted[i], 0, got[i] == wanted[i]);
  });
}

}  // namespace fmhc::check
