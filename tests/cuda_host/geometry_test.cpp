// Launch shapes for every size that a plan can ask for: everything is covered, limits of the launch bounds
// hold.
#include "backends/cuda/geometry.h"

#include <gtest/gtest.h>

namespace fmhc::cuda {
namespace {

constexpr int64_t kTokens[] = {1,   2,   15,  16,  17,   31,   33,    64,     65,
                               128, 129, 255, 500, 1024, 4097, 16384, 1 << 20};
constexpr int32_t kUnits[] = {1, 16, 78, 108, 132, 170};
constexpr int64_t kShared = 227 << 10;

TEST(CudaGeometry, PostCoversARowAndFillsTheDevice) {
  int cases = 0;
  for (const int64_t vectors : {1, 31, 64, 500, 512, 640, 896, 4096}) {
    for (const int64_t tokens : kTokens) {
      for (const int32_t units : kUnits) {
        const PostShape shape = post_shape(tokens, vectors, units);
        EXPECT_GE(int64_t{shape.threads} * shape.tiles, vectors);
        EXPECT_LT(int64_t{shape.threads} * (shape.tiles - 1), vectors);
        EXPECT_LE(shape.threads, 256);
        EXPECT_EQ(shape.threads % 32, 0);
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 8 * 17 * 6);
  EXPECT_GE(post_shape(16, 512, 132).tiles * 16, 132);
  EXPECT_EQ(post_shape(4096, 896, 132).threads * post_shape(4096, 896, 132).tiles, 896);
}

TEST(CudaGeometry, FinishHoldsARow) {
  for (const int64_t tokens : kTokens) {
    for (int64_t vectors = 1; vectors <= 1920; vectors += 7) {
      const FinishShape shape = finish_shape(tokens, vectors, 132, false);
      ASSERT_GE(shape.index, 0) << vectors;
      EXPECT_GE(int64_t{shape.warps} * 32 * kFinishVectors[shape.index], vectors);
      EXPECT_LE(shape.warps, shape.index == 0 ? 31 : 15);
    }
  }
  EXPECT_EQ(finish_shape(1, 1921, 132, false).index, -1);
  EXPECT_EQ(finish_shape(1, 512, 132, false).index, 0);
  EXPECT_EQ(finish_shape(8192, 512, 132, false).index, 1);
  EXPECT_EQ(finish_shape(8192, 896, 132, false).index, 2);
  for (const int64_t tokens : kTokens) {
    EXPECT_EQ(finish_shape(tokens, 512, 132, true).index, 1);
    EXPECT_EQ(finish_shape(tokens, 512, 132, true).warps, finish_shape(1, 512, 16, true).warps);
  }
}

TEST(CudaGeometry, ProjectCoversEveryTokenWithinTheLimits) {
  int cases = 0;
  int staged = 0;
  for (const ProjectKind kind : {ProjectKind::kProject, ProjectKind::kHead, ProjectKind::kSeam}) {
    for (const int64_t hidden : {64, 128, 4096, 5120, 7168}) {
      for (const int64_t tokens : kTokens) {
        for (const int32_t splits : {1, 2, 16, 32, 64, 200}) {
          for (const int32_t pieces : {2, 3}) {
            const ProjectShape shape =
                project_shape(kind, FMHC_BF16, hidden, tokens, splits, pieces, 132, kShared);
            EXPECT_GE(shape.groups * shape.group_tokens, tokens);
            EXPECT_LT((shape.groups - 1) * shape.group_tokens, tokens);
            EXPECT_EQ(shape.group_tokens % 16, 0);
            EXPECT_GE(shape.warp_rows, 1);
            EXPECT_LE(shape.warp_rows, !shape.staged ? 2 : kind == ProjectKind::kSeam ? 3 : 4);
            EXPECT_LE(shape.shared_bytes, static_cast<size_t>(kShared));
            ++cases;
            staged += shape.staged ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, 3 * 5 * 17 * 6 * 2);
  EXPECT_GT(staged, cases / 2);
}

TEST(CudaGeometry, HeadDealsOutARow) {
  int cases = 0;
  for (int64_t hidden = 64; hidden <= 8192; hidden += 64) {
    const HeadShape shape = head_shape(hidden, 1000, 132);
    if (shape.cluster == 0) continue;
    EXPECT_EQ(int64_t{shape.cluster} * shape.threads * 2, hidden);
    EXPECT_LE(shape.threads, 512);
    EXPECT_EQ(shape.threads % 32, 0);
    EXPECT_LE(shape.clusters * shape.cluster, 132);
    ++cases;
  }
  EXPECT_EQ(cases, 16 + 8 + 8 + 8);
  EXPECT_EQ(head_shape(4096, 1000, 132).cluster, 4);
  EXPECT_EQ(head_shape(7168, 1000, 132).cluster, 8);
  EXPECT_EQ(head_shape(4096, 1, 132).clusters, 1);
  EXPECT_EQ(head_shape(100, 1, 132).cluster, 0);
}

// What the tables of bench/ measure must keep fn in shared memory.
TEST(CudaGeometry, MeasuredShapesAreStaged) {
  struct Case {
    int64_t hidden;
    int32_t splits;
  };
  for (const Case& shape : {Case{4096, 16}, Case{4096, 64}, Case{5120, 32}, Case{7168, 32}, Case{7168, 64}}) {
    for (const ProjectKind kind : {ProjectKind::kProject, ProjectKind::kSeam}) {
      EXPECT_TRUE(project_shape(kind, FMHC_BF16, shape.hidden, 4096, shape.splits, 3, 132, kShared).staged)
          << shape.hidden;
    }
  }
}

}  // namespace
}  // namespace fmhc::cuda
