// Compares text with a file of this folder that is kept in the repository, so that a change of behaviour
// shows in review. On a difference the new text is written beside the test's working directory, ready to be
// reviewed and kept.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace fmhc::test {

inline void compare_with_stored(const std::string& name, const std::string& text) {
  std::ifstream file(std::string(FMHC_TEST_PLAN "/") + name);
  std::ostringstream stored;
  stored << file.rdbuf();
  if (stored.str() == text) return;
  std::istringstream old_lines(stored.str());
  std::istringstream new_lines(text);
  std::string before, after;
  int line = 0;
  do {
    before.clear();
    after.clear();
    std::getline(old_lines, before);
    std::getline(new_lines, after);
    ++line;
  } while (before == after && (old_lines || new_lines));
  std::ofstream(name) << text;
  ADD_FAILURE() << "line " << line << "\n  stored: " << before << "\n  now:    " << after
                << "\nreview the new table, and if it is right: cp "
                << std::filesystem::absolute(name).string() << " " << FMHC_TEST_PLAN "/";
}

}  // namespace fmhc::test
