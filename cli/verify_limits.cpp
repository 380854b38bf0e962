#include "cli/verify_limits.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "check/compare.h"
#include "cli/file_result.h"
#include "io/file.h"

namespace fmhc::cli {
namespace {

struct Profile {
  const char* model;  // nullptr: any
  int32_t dtype;      // 0: any
  const char* tag;    // part of the trace's note or source; "" any
  std::vector<Limit> limits;
};

// Relative root mean square of one rounding to bf16, and how far sums of independent ones may exceed it.
constexpr double kBf16Rms = 1.65e-3, kMargin = 1.25;

constexpr const char* kFp32 = "the recording is fp32; an oracle reaches 2.6e-7, 5.8e-7, 0.8e-7 and 1.5e-7";
constexpr const char* kTies = "both round a result of fp32; a rare tie falls on the other side";
constexpr const char* kOneRounding = "the recording makes the same sum and rounds it once";

const std::vector<Limit> kFp32Limits = {
    {"post_mix", "", Measure::kMaxAbs, 5e-7, kFp32},
    {"pre_mix", "", Measure::kMaxAbs, 5e-7, kFp32},
    {"comb_mix", "", Measure::kMaxAbs, 1e-6, kFp32},
    {"layer_input", "", Measure::kRelativeNorm, 2e-7, kFp32},
    {"normed_input", "", Measure::kRelativeNorm, 4e-7, "layer_input and the rounding of the norm"},
    {"residual_out", "", Measure::kRelativeNorm, 3e-7, kFp32},
    {"output", "", Measure::kRelativeNorm, 2e-7, "as layer_input"},
};

// A copy with other limits for single tensors, in front.
std::vector<Limit> with(std::vector<Limit> changed, const std::vector<Limit>& base) {
  for (const Limit& limit : base) {
    const bool replaced = std::any_of(changed.begin(), changed.end(), [&](const Limit& other) {
      return std::string_view(other.tensor) == limit.tensor && other.kernel[0] == '\0';
    });
    if (!replaced) changed.push_back(limit);
  }
  return changed;
}

const std::vector<Limit> kNarrowLimits = {
    {"post_mix", "", Measure::kMaxAbs, 1e-6, "coefficients are fp32 in both"},
    {"pre_mix", "", Measure::kMaxAbs, 1e-6, "coefficients are fp32 in both"},
    {"comb_mix", "", Measure::kMaxAbs, 1e-6, "coefficients are fp32 in both"},
    {"layer_input", "", Measure::kRelativeNorm, 1e-4, kTies},
    // Roundings: one of ours; two of a recording that rounds again before it multiplies by the weight.
    {"normed_input", "", Measure::kRelativeNorm, kMargin * 1.7321 * kBf16Rms,
     "the recording may round once more, before the weight"},
    {"residual_out", "", Measure::kRelativeNorm, 1e-4, kTies},
    {"output", "", Measure::kRelativeNorm, 1e-4, kTies},
};

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> table = {
      {nullptr, FMHC_FP32, "peaked",
       with({{"comb_mix", "ref", Measure::kMaxAbs, 1e-6, kFp32},
             {"comb_mix", "", Measure::kMaxAbs, 2e-6, "fp32 itself is 1.04e-6 off with peaked logits"}},
            kFp32Limits)},
      {nullptr, FMHC_FP32, "", kFp32Limits},
      {"deepseek_v41", FMHC_BF16, "sglang",
       with({{"post_mix", "", Measure::kMaxAbs, 5e-7, "coefficients are fp32 in both"},
             {"pre_mix", "", Measure::kMaxAbs, 5e-7, "coefficients are fp32 in both"},
             {"comb_mix", "", Measure::kMaxAbs, 5e-7, "coefficients are fp32 in both"},
             {"layer_input", "", Measure::kEqual, 0, kOneRounding},
             {"output", "", Measure::kEqual, 0, kOneRounding}},
            kNarrowLimits)},
      {"deepseek_v4", FMHC_BF16, "casts post and comb to bf16",
       with({{"residual_out", "", Measure::kBf16Casts, 1,
              "two casts and a rounding of every term, one of the sum"},
             {"residual_out", "", Measure::kRelativeNorm, kMargin * 2 * kBf16Rms,
              "four independent roundings to bf16: three of the recording, one of ours"}},
            kNarrowLimits)},
      {nullptr, 0, "", kNarrowLimits},
  };
  return table;
}

bool fits(const Profile& profile, const TraceCalls& trace) {
  return (profile.model == nullptr ||
          std::string_view(profile.model) == io::model_type_name(trace.constants().model)) &&
         (profile.dtype == 0 || profile.dtype == trace.dtype()) &&
         trace.note().find(profile.tag) != std::string::npos;
}

// docs/accuracy.md derives the bound: two factors (1 + e) on every term and one on the sum, and a last
// rounding of what is compared with it.
Values cast_bound(const Case& post, const Values& got, double factor) {
  constexpr double u = 0x1p-8;
  const auto n = static_cast<size_t>(post.problem.streams), hidden = static_cast<size_t>(post.problem.hidden);
  Values bound(got.size());
  for (size_t i = 0; i < bound.size(); ++i) {
    const size_t t = i / (n * hidden), k = i / hidden % n, h = i % hidden;
    double terms = std::fabs(post.in.post_in[t * n + k] * post.in.sublayer_output[t * hidden + h]);
    for (size_t j = 0; j < n; ++j) {
      terms += std::fabs(post.in.comb_in[(t * n + j) * n + k] * post.in.residual[(t * n + j) * hidden + h]);
    }
    const double casts = (2 * u + u * u) * terms;
    bound[i] = factor * (casts + u * (std::fabs(got[i]) * (1 + u) + casts) + u * std::fabs(got[i]));
  }
  return bound;
}

}  // namespace

const std::vector<std::string>& Limits::tensors() {
  static const std::vector<std::string> names = {"pre_mix",      "post_mix",     "comb_mix", "layer_input",
                                                 "normed_input", "residual_out", "output"};
  return names;
}

void Limits::set(const std::string& tensor, double limit) {
  if (!std::isfinite(limit) || limit < 0) {
    throw Failure(kExitBad, "the bound of " + tensor + " is " + std::to_string(limit) +
                                "; accepted: a finite number, 0 or more");
  }
  const bool mix = tensor.ends_with("_mix");
  user_[tensor] = {mix ? Measure::kMaxAbs : Measure::kRelativeNorm, limit};
}

void Limits::load(const std::string& path) {
  constexpr const char* kFormat = "flashmhc-bounds-1";
  constexpr uint64_t kMostBytes = 1 << 20;
  const io::RegularFile source = take(io::RegularFile::open(path));
  if (source.size() > kMostBytes) {
    throw Failure(kExitBad, path + ": " + std::to_string(source.size()) +
                                " bytes; a bound file has at most " + std::to_string(kMostBytes));
  }
  std::string text(source.size(), '\0');
  take(source.read(0, std::as_writable_bytes(std::span(text))));
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object() || file.value("format", Json()) != kFormat || !file.contains("bounds") ||
      !file["bounds"].is_object()) {
    throw Failure(kExitBad,
                  path + R"(: expected {"format": ")" + kFormat + R"(", "bounds": {"post_mix": 1e-6, ...}})");
  }
  for (const auto& [key, value] : file.items()) {
    if (key != "format" && key != "bounds") throw Failure(kExitBad, path + ": unknown key \"" + key + "\"");
  }
  for (const auto& [tensor, limit] : file["bounds"].items()) {
    if (std::find(tensors().begin(), tensors().end(), tensor) == tensors().end()) {
      std::string known;
      for (const std::string& name : tensors()) known += " " + name;
      throw Failure(kExitBad, path + ": unknown tensor \"" + tensor + "\"; accepted:" + known);
    }
    if (!limit.is_number()) throw Failure(kExitBad, path + ": the bound of " + tensor + " is no number");
    set(tensor, limit.get<double>());
  }
}

std::optional<UserLimit> Limits::user(const std::string& tensor) const {
  const auto found = user_.find(tensor);
  return found == user_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Limit> Limits::recorded(const TraceCalls& trace, const std::string& tensor,
                                    const std::string& kernel) const {
  if (const auto found = user_.find(tensor); found != user_.end()) {
    return {{"", "", found->second.measure, found->second.limit, "given"}};
  }
  const auto profile =
      std::find_if(profiles().begin(), profiles().end(), [&](const Profile& p) { return fits(p, trace); });
  std::vector<Limit> limits;
  for (const Limit& limit : profile->limits) {
    if (tensor != limit.tensor || kernel.rfind(limit.kernel, 0) != 0) continue;
    // The row of a kernel stands in front of the row for all of the same measure.
    const bool decided = std::any_of(limits.begin(), limits.end(),
                                     [&](const Limit& other) { return other.measure == limit.measure; });
    if (!decided) limits.push_back(limit);
  }
  return limits;
}

void compare_recorded(const std::vector<Limit>& limits, const Values& got, const Values& recorded,
                      const Case& call, check::TensorReport* report) {
  const check::TensorReport blank = *report;
  for (const Limit& limit : limits) {
    check::TensorReport one = blank;
    switch (limit.measure) {
      case Measure::kMaxAbs:
        check::compare_bound(got, recorded, Values(got.size(), limit.limit), &one);
        break;
      case Measure::kRelativeNorm:
        check::compare_norm(got, recorded, limit.limit, &one);
        break;
      case Measure::kEqual:
        check::compare_equal(got, recorded, &one);
        break;
      case Measure::kBf16Casts:
        check::compare_bound(got, recorded, cast_bound(call, got, limit.limit), &one);
        break;
    }
    // The first limit that fails, or the tightest, is the one whose worst element is shown.
    std::vector<check::Outcome> outcomes = report->outcomes;
    outcomes.insert(outcomes.end(), one.outcomes.begin(), one.outcomes.end());
    const bool first = report->count == 0;
    if (first || (report->passed() && (!one.passed() || one.ratio > report->ratio))) *report = one;
    report->outcomes = std::move(outcomes);
  }
}

}  // namespace fmhc::cli
