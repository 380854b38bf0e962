#include "cli/console.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace fmhc::cli {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.+-e%") == std::string::npos;
}

std::string padded(const std::string& text, size_t width) {
  const std::string space(width - std::min(width, text.size()), ' ');
  return is_number(text) ? space + text : text + space;
}

}  // namespace

void require_ok(int32_t code, const fmhc_diag& diag) {
  if (code == FMHC_OK) return;
  const int exit_code = code == FMHC_INVALID ? kExitBad : code == FMHC_INTERNAL ? kExitBug : kExitNo;
  throw Failure(exit_code, std::string(diag.text) + " (" + fmhc_code_name(code) + ")");
}

CLI::Option* add_json_flag(CLI::App& app, bool* json) {
  return app.add_flag("--json", *json, "Print one JSON object on standard output instead of text");
}

void print_json(const Json& value) {
  std::cout << value.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void print_json_line(const Json& value) {
  std::cout << value.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  for (size_t index = 0; index < rows.size(); ++index) {
    std::string line;
    for (size_t column = 0; column < rows[index].size(); ++column) {
      line += (column == 0 ? "" : "  ") + padded(rows[index][column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << '\n';
    if (index > 0) continue;
    std::string rule;
    for (size_t column = 0; column < widths.size(); ++column) {
      rule += (column == 0 ? "" : "  ") + std::string(widths[column], '-');
    }
    std::cout << rule << '\n';
  }
}

}  // namespace fmhc::cli
