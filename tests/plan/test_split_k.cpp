// Both split policies against the stored table, and the boundaries of the slices.
#include "plan/split_k.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "ops/slices.h"

namespace fmhc {
namespace {

std::vector<std::vector<int64_t>> read_table() {
  std::ifstream file(FMHC_TEST_PLAN "/split_k_table.csv");
  std::vector<std::vector<int64_t>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::vector<int64_t>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(std::stoll(cell));
  }
  return rows;
}

TEST(SplitK, StoredTable) {
  int checked = 0;
  for (const std::vector<int64_t>& row : read_table()) {
    ASSERT_EQ(row.size(), 6u);
    const auto [tokens, flat, units] = std::tuple(row[0], row[1], row[2]);
    SCOPED_TRACE(testing::Message() << "T " << tokens << " K " << flat << " units " << units);
    EXPECT_EQ(split_sglang(tokens, flat, units), row[3]);
    EXPECT_EQ(split_auto(tokens, flat, units, false), row[4]);
    EXPECT_EQ(split_auto(tokens, flat, units, true), row[5]);
    ++checked;
  }
  EXPECT_EQ(checked, 17 * 11 * 6);
}

// An H200 on DeepSeek-V4-Flash: worked by hand from the rule.
TEST(SplitK, KnownPoints) {
  EXPECT_EQ(split_sglang(64, 16384, 132), 16);   // min(132, 64) = 64
  EXPECT_EQ(split_sglang(1024, 16384, 132), 8);  // 132 / 16 = 8
  EXPECT_EQ(split_sglang(4224, 16384, 132), 2);  // 66 row blocks
  EXPECT_EQ(split_sglang(4225, 16384, 132), 1);
  EXPECT_EQ(split_auto(64, 16384, 132, false), 64);
}

TEST(SplitK, BatchInvariantFollowsKAlone) {
  int checked = 0;
  for (const int64_t flat : {64, 4096, 16384, 28672}) {
    const int32_t split = split_auto(1, flat, 1, true);
    for (const int64_t tokens : {0, 1, 64, 65, 5000, 10'000'000}) {
      for (const int64_t units : {1, 78, 132, 160}) {
        EXPECT_EQ(split_auto(tokens, flat, units, true), split);
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, 96);
}

// Slices tile K exactly, start at multiples of 64, and the longer ones come first.
TEST(SplitK, SlicesTileK) {
  int checked = 0;
  for (const int64_t flat : {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{65}, int64_t{255}, int64_t{1000},
                             int64_t{7680}, int64_t{16384}, int64_t{20480}, int64_t{(1LL << 31) - 64}}) {
    const int64_t blocks = (flat + 63) / 64;
    for (const int32_t splits : {1, 2, 3, 5, 7, 8, 16, 32, 53, 64, 112}) {
      if (splits > blocks) continue;
      int64_t end = 0;
      int64_t previous_blocks = blocks;
      for (int32_t index = 0; index < splits; ++index) {
        const Slice slice = slice_of(flat, splits, index);
        const int64_t length = (slice.end - slice.begin + 63) / 64;
        ASSERT_EQ(slice.begin, end);
        ASSERT_EQ(slice.begin % 64, 0);
        ASSERT_GT(slice.end, slice.begin);
        ASSERT_LE(length, previous_blocks);
        ASSERT_GE(length, blocks / splits);
        ASSERT_LE(length, blocks / splits + 1);
        previous_blocks = length;
        end = slice.end;
        ++checked;
      }
      ASSERT_EQ(end, flat);
    }
  }
  EXPECT_EQ(checked, 1266);
}

}  // namespace
}  // namespace fmhc
