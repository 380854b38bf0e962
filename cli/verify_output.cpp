#include "cli/verify_output.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <map>

namespace fmhc::cli {
namespace {

constexpr const char* kSchema = "flashmhc-verify-1";
constexpr Against kAll[] = {Against::kOracle, Against::kRecorded, Against::kComposed, Against::kChain};

std::string number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
std::string small(double value) {
  return value == 0 ? "0" : number("%.2e", value);
}

std::string place(const Record& record) {
  const bool inside = record.site == "attn" || record.site == "ffn";
  return inside ? "layer " + std::to_string(record.layer) + " " + record.site : record.site;
}

// The comparisons of one tensor, side by side.
using Line = std::array<const Record*, std::size(kAll)>;

bool is_worse(const Record& a, const Record& b) {
  if (a.report.passed() != b.report.passed()) return !a.report.passed();
  return a.report.ratio > b.report.ratio;
}

// In the order of first appearance.
std::vector<Line> group(const std::vector<Record>& records, bool summary) {
  std::vector<Line> lines;
  std::map<std::string, size_t> index;
  for (const Record& record : records) {
    const std::string key = (summary ? "" : place(record)) + "/" + record.report.tensor;
    const auto [found, fresh] = index.emplace(key, lines.size());
    if (fresh) lines.push_back({});
    const Record*& slot = lines[found->second][static_cast<size_t>(record.against)];
    if (slot == nullptr || is_worse(record, *slot)) slot = &record;
  }
  return lines;
}

std::vector<std::string> cells(const Line& line, bool summary) {
  const auto at = [&](Against against) { return line[static_cast<size_t>(against)]; };
  const Record* first = *std::find_if(line.begin(), line.end(), [](const Record* r) { return r != nullptr; });
  const bool passed = std::all_of(line.begin(), line.end(),
                                  [](const Record* r) { return r == nullptr || r->report.passed(); });
  std::vector<std::string> row = {summary ? "worst" : place(*first), first->report.tensor};
  const Record* oracle = at(Against::kOracle);
  row.push_back(oracle != nullptr ? small(oracle->report.max_abs) : "");
  row.push_back(oracle != nullptr ? number("%.3f", oracle->report.ratio) : "");
  const Record* recorded = at(Against::kRecorded);
  row.push_back(recorded != nullptr ? small(recorded->report.max_abs) : "");
  row.push_back(recorded != nullptr ? small(recorded->report.relative_norm) : "");
  row.push_back(recorded != nullptr ? number("%.3f", recorded->report.ratio) : "");
  std::string bits;
  for (const Against against : {Against::kComposed, Against::kChain}) {
    if (at(against) == nullptr) continue;
    bits = at(against)->report.violations == 0 ? "equal"
                                               : std::to_string(at(against)->report.violations) + " differ";
  }
  row.push_back(bits);
  row.push_back(passed ? "ok" : "FAIL");
  return row;
}

void print_drift(const TraceResult& result) {
  std::cout << "\nfree run, relative distance of the residual behind each layer\n";
  std::vector<std::vector<std::string>> rows = {
      {"layer", "from ref", "plain fp32 from ref", "from the recording", "log growth"}};
  for (const DriftRow& row : result.free.rows) {
    const bool output = &row == &result.free.rows.back();
    rows.push_back({output ? "output" : std::to_string(row.layer), small(row.drift), small(row.plain),
                    small(row.recorded), small(row.log_growth)});
  }
  print_table(rows);
}

Json record_json(const Record& record) {
  const check::TensorReport& report = record.report;
  Json rules = Json::array();
  for (const check::Outcome& outcome : report.outcomes) {
    rules.push_back({{"rule", outcome.rule},
                     {"measured", outcome.measured},
                     {"limit", outcome.limit},
                     {"holds", outcome.holds}});
  }
  Json json = {{"layer", record.layer},
               {"site", record.site},
               {"tensor", report.tensor},
               {"vs", against_name(record.against)},
               {"elements", report.count},
               {"violations", report.violations},
               {"max_abs", report.max_abs},
               {"relative_norm", report.relative_norm},
               {"bound", report.bound},
               {"ratio", report.ratio},
               {"worst_index", report.worst_index()},
               {"got", report.got},
               {"wanted", report.wanted},
               {"rules", rules},
               {"verdict", report.passed() ? "pass" : "fail"}};
  if (!report.passed()) json["failed_rule"] = report.failed_rule();
  Json reasons = Json::array();
  for (const Limit& limit : record.limits) reasons.push_back(limit.reason);
  if (!reasons.empty()) json["reasons"] = reasons;
  return json;
}

Json free_json(const FreeRun& free) {
  Json rows = Json::array(), rules = Json::array();
  for (const DriftRow& row : free.rows) {
    rows.push_back({{"layer", &row == &free.rows.back() ? Json("output") : Json(row.layer)},
                    {"drift", row.drift},
                    {"plain_drift", row.plain},
                    {"recorded", row.recorded},
                    {"log_growth", row.log_growth}});
  }
  for (const check::Outcome& outcome : free.alarm.outcomes) {
    rules.push_back({{"rule", outcome.rule},
                     {"measured", outcome.measured},
                     {"limit", outcome.limit},
                     {"holds", outcome.holds}});
  }
  return {{"layers", rows}, {"rules", rules}, {"verdict", free.alarm.passed() ? "pass" : "fail"}};
}

Json trace_json(const TraceResult& result) {
  const io::TraceConstants& c = result.constants;
  Json records = Json::array();
  for (const Record& record : result.records) records.push_back(record_json(record));
  return {{"file", result.file},
          {"constants",
           {{"model_type", io::model_type_name(c.model)},
            {"dtype", io::dtype_name(c.dtype)},
            {"hidden_size", c.hidden},
            {"num_hidden_layers", c.layers},
            {"hc_mult", c.streams},
            {"tokens", c.tokens},
            {"hc_sinkhorn_iters", c.sinkhorn_iters},
            {"hc_eps", c.hc_eps},
            {"hc_post_mult", c.post_mult},
            {"rms_norm_eps", c.rms_norm_eps}}},
          {"kernels", result.kernels},
          {"records", records},
          {"free_run", free_json(result.free)},
          {"verdict", result.passed() ? "pass" : "fail"}};
}

}  // namespace

bool TraceResult::passed() const {
  return !records.empty() && free.alarm.passed() &&
         std::all_of(records.begin(), records.end(), [](const Record& r) { return r.report.passed(); });
}

void print_result(const TraceResult& result, bool summary) {
  const io::TraceConstants& c = result.constants;
  std::cout << result.file << ": " << io::model_type_name(c.model) << ", " << io::dtype_name(c.dtype) << ", "
            << c.layers << " layers, " << c.streams << " streams of " << c.hidden << ", " << c.tokens
            << " tokens\nkernels:";
  for (const std::string& kernel : result.kernels) std::cout << ' ' << kernel;
  std::cout << "\n\n";
  std::vector<std::vector<std::string>> rows = {
      {"where", "tensor", "off ref", "of bound", "off recording", "rel norm", "of limit", "bits", "verdict"}};
  for (const Line& line : group(result.records, summary)) rows.push_back(cells(line, summary));
  print_table(rows);
  print_drift(result);
  std::cout << '\n';
  for (const Record& record : result.records) {
    if (record.report.passed()) continue;
    std::cout << "FAIL " << result.file << ": " << place(record) << ": " << record.report.text() << " (vs "
              << against_name(record.against) << ")\n";
  }
  for (const check::Outcome& outcome : result.free.alarm.outcomes) {
    if (outcome.holds) continue;
    std::cout << "FAIL " << result.file << ": free run: " << outcome.rule << " " << small(outcome.measured)
              << ", limit " << small(outcome.limit) << '\n';
  }
  std::cout << (result.passed() ? "PASS " : "FAIL ") << result.file << ": " << result.records.size()
            << " comparisons\n\n";
}

Json to_json(const std::vector<TraceResult>& results, const VerifyConfig& config) {
  Json traces = Json::array();
  bool passed = true;
  for (const TraceResult& result : results) {
    traces.push_back(trace_json(result));
    passed = passed && result.passed();
  }
  return {{"schema", kSchema},
          {"version", fmhc_version()},
          {"backend", config.kernel.empty() ? Json("auto") : Json(config.kernel)},
          {"vs", config.oracle && config.recorded ? "both"
                 : config.oracle                  ? "ref"
                                                  : "recorded"},
          {"traces", traces},
          {"verdict", passed ? "pass" : "fail"}};
}

}  // namespace fmhc::cli
