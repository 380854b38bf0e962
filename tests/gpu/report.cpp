#include "report.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace fmhc_gpu {
namespace {

constexpr size_t kShownFailures = 3;
constexpr size_t kShownAbsent = 4;

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// Waits for a child at most this long, then kills it. The exit status, or -1 for a child that was killed.
int wait_for(pid_t child, double seconds) {
  const Clock clock;
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
    if (clock.seconds() > seconds) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return -1;
    }
    usleep(5000);
  }
}

std::string status_text(int status) {
  if (status == -1) return "killed at its time limit";
  if (WIFSIGNALED(status)) return std::string("signal ") + strsignal(WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  return code == kPassed ? "pass" : code == kNotRun ? "not run" : "exit " + std::to_string(code);
}

int run_child(const Options& options, const char* subcommand, const Part& part, double limit) {
  std::vector<std::string> words = {"/proc/self/exe", subcommand,
                                    "--part",         part.name,
                                    "--device",       options.device == FMHC_CUDA ? "cuda" : "cpu",
                                    "--seconds",      number(limit),
                                    "--cases",        std::to_string(options.cases),
                                    "--seed",         std::to_string(options.seed)};
  if (!options.out.empty()) words.insert(words.end(), {"--out", options.out});
  if (!options.kernel.empty()) words.insert(words.end(), {"--kernel", options.kernel});
  if (options.strict) words.insert(words.end(), {"--strict", "1"});
  for (const auto& [key, value] : options.values) {
    if (key != "part") words.insert(words.end(), {"--" + key, value});
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  std::fflush(stdout);
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) != 0) return -1;
  return wait_for(child, limit + 5);
}

void on_alarm(int) {
  static constexpr char kText[] = "{\"fatal\": \"time limit reached inside the part\"}\n";
  (void)!write(STDOUT_FILENO, kText, sizeof kText - 1);
  _exit(5);
}

}  // namespace

std::vector<std::string> Options::list(const std::string& key, const std::string& fallback) const {
  const auto found = values.find(key);
  const std::string text = found == values.end() ? fallback : found->second;
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

std::vector<int64_t> Options::numbers(const std::string& key, const std::string& fallback) const {
  std::vector<int64_t> result;
  for (const std::string& item : list(key, fallback))
    result.push_back(std::strtoll(item.c_str(), nullptr, 10));
  return result;
}

std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + "\"";
}

void append_line(const Options& options, const std::string& file, const std::string& line) {
  if (options.out.empty()) return;
  const std::string path = options.out + "/" + file;
  std::FILE* stream = std::fopen(path.c_str(), "a");
  if (stream == nullptr) die("cannot write", path.c_str());
  std::fprintf(stream, "%s\n", line.c_str());
  std::fclose(stream);
}

void Figure::fail(const std::string& where, const std::string& what) {
  ++failures_;
  if (first_.size() >= kShownFailures) return;
  first_.push_back(where + ": " + what);
  std::printf("  FAIL %s: %s\n       %s\n", name_.c_str(), where.c_str(), what.c_str());
  std::fflush(stdout);
}

void Figure::absent(const std::string& what) {
  ++absent_[what];
}

void Figure::ratio(const std::string& output, double worst) {
  double& entry = worst_[output];
  entry = std::max(entry, worst);
}

void Figure::add(const CaseSpec& spec, const std::string& kernel, const Outcome& outcome) {
  const std::string suffix =
      projects(spec.problem.op) ? std::string(".") + class_name(spec.problem.projection) : "";
  for (const Check& check : outcome.checks) {
    if (check.name != "finite") ratio(check.name + suffix, check.tally.worst);
  }
  pass(static_cast<int64_t>(outcome.checks.size()));
  for (const std::string& text : outcome.failures) fail(kernel + ": " + describe(spec), text);
}

Result Figure::finish() {
  const char* status = failures_ > 0 ? "FAIL" : asserted_ > 0 ? "pass" : "not run";
  std::string line = "{\"figure\": " + json_text(name_) + ", \"status\": " + json_text(status) +
                     ", \"asserted\": " + std::to_string(asserted_) +
                     ", \"mismatches\": " + std::to_string(failures_);
  const auto map_text = [&](const char* key, const auto& map, const auto& format) {
    if (map.empty()) return;
    line += std::string(", \"") + key + "\": {";
    bool comma = false;
    for (const auto& [name, value] : map) {
      line += (comma ? ", " : "") + json_text(name) + ": " + format(value);
      comma = true;
    }
    line += "}";
  };
  map_text("worst_ratio", worst_, number);
  map_text("absent", absent_, [](int64_t value) { return std::to_string(value); });
  map_text("counts", tallies_, [](int64_t value) { return std::to_string(value); });
  map_text("notes", notes_, [](const std::string& value) { return json_text(value); });
  line += ", \"first\": [";
  for (size_t i = 0; i < first_.size(); ++i) line += (i > 0 ? ", " : "") + json_text(first_[i]);
  line +=
      "], \"seed\": " + std::to_string(options_.seed) + ", \"seconds\": " + number(clock_.seconds()) + "}";
  append_line(options_, "tests.jsonl", line);

  std::printf("%-8s %-24s asserted %lld, mismatches %lld, %.1f s\n", status, name_.c_str(),
              static_cast<long long>(asserted_), static_cast<long long>(failures_), clock_.seconds());
  std::string ratios;
  for (const auto& [name, value] : worst_) ratios += " " + name + " " + number(value);
  if (!ratios.empty()) std::printf("         worst ratio to the bound:%s\n", ratios.c_str());
  size_t shown = 0;
  for (const auto& [name, value] : absent_) {
    if (++shown <= kShownAbsent)
      std::printf("         absent: %s (%lld)\n", name.c_str(), static_cast<long long>(value));
  }
  if (shown > kShownAbsent) std::printf("         absent: %zu more\n", shown - kShownAbsent);
  for (const auto& [name, value] : notes_) std::printf("         %s: %s\n", name.c_str(), value.c_str());
  std::fflush(stdout);
  return failures_ > 0 ? kFailed : asserted_ > 0 ? kPassed : kNotRun;
}

void arm_timeout(double seconds) {
  if (seconds <= 0) return;
  std::signal(SIGALRM, on_alarm);
  alarm(static_cast<unsigned>(seconds) + 1);
}

Result run_parts(const Options& options, const char* subcommand, const std::vector<Part>& parts,
                 double seconds) {
  const Clock clock;
  Result result = kNotRun;
  int not_run = 0;
  std::vector<std::pair<std::string, std::string>> table;
  for (const Part& part : parts) {
    const double left = seconds - clock.seconds();
    if (left < 2) {
      table.emplace_back(part.name, "NOT RUN: no time left");
      result = kFailed;
      continue;
    }
    const Clock own;
    const int status = run_child(options, subcommand, part, std::min(left, part.seconds));
    std::string text = status_text(status);
    result = merge(result, text == "pass" ? kPassed : text == "not run" ? kNotRun : kFailed);
    not_run += text == "not run";
    if (text != "pass" && text != "not run") {
      append_line(options, "tests.jsonl",
                  "{\"figure\": " + json_text(part.name) + ", \"status\": " + json_text(text) + "}");
    }
    table.emplace_back(part.name, text + " (" + number(own.seconds()) + " s)");
  }
  std::printf("== %s: %s, %zu parts, %d not run, %.1f s\n", subcommand,
              result == kFailed ? "NOT ALL PASSED" : "passed", parts.size(), not_run, clock.seconds());
  for (const auto& [name, text] : table) {
    if (text.rfind("pass", 0) != 0) std::printf("   %-20s %s\n", name.c_str(), text.c_str());
  }
  return result;
}

}  // namespace fmhc_gpu
