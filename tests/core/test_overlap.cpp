// overlaps() against a set of bytes: it may never miss a shared byte, and is exact for the layouts that it
// promises: whole tensors, padded rows, and column slices of one larger tensor.
#include "ops/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>

namespace fmhc {
namespace {

alignas(256) const unsigned char kGround[1 << 16] = {};

// Small deterministic numbers.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed * 2 + 1) {}
  int64_t below(int64_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(bound));
  }

 private:
  uint64_t state_;
};

struct Bytes {
  std::set<int64_t> touched;
  bool twice = false;  // two index tuples reach one element
};

Bytes bytes_of(const fmhc_in& tensor) {
  Bytes out;
  const int64_t element = tensor.dtype == FMHC_FP32 ? 4 : 2;
  int64_t count = 1;
  for (int axis = 0; axis < tensor.rank; ++axis) count *= tensor.shape[axis];
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t offset = static_cast<const unsigned char*>(tensor.data) - kGround;
    for (int axis = tensor.rank; axis-- > 0; rest /= tensor.shape[axis]) {
      offset += rest % tensor.shape[axis] * tensor.stride[axis] * element;
    }
    out.twice |= out.touched.count(offset) != 0;
    for (int64_t byte = 0; byte < element; ++byte) out.touched.insert(offset + byte);
  }
  return out;
}

bool share(const Bytes& a, const Bytes& b) {
  return std::any_of(a.touched.begin(), a.touched.end(),
                     [&](int64_t byte) { return b.touched.count(byte) != 0; });
}

fmhc_in random_tensor(Draw& draw) {
  fmhc_in tensor{kGround + 4 * draw.below(24), {}, {}, 0, FMHC_BF16};
  if (draw.below(2) == 0) tensor.dtype = FMHC_FP32;
  tensor.rank = static_cast<int32_t>(1 + draw.below(3));
  for (int axis = 0; axis < tensor.rank; ++axis) {
    tensor.shape[axis] = 1 + draw.below(4);
    tensor.stride[axis] = draw.below(30);
  }
  return tensor;
}

TEST(Overlap, NeverMissesASharedByte) {
  constexpr int kCases = 20000;
  int shared = 0;
  int apart = 0;
  for (int seed = 0; seed < kCases; ++seed) {
    Draw draw(static_cast<uint64_t>(seed));
    const fmhc_in a = random_tensor(draw);
    const fmhc_in b = random_tensor(draw);
    const bool truth = share(bytes_of(a), bytes_of(b));
    EXPECT_EQ(overlaps(a, b), overlaps(b, a)) << "seed " << seed;
    EXPECT_TRUE(overlaps(a, b) || !truth) << "seed " << seed;
    EXPECT_TRUE(overlaps_itself(a) || !bytes_of(a).twice) << "seed " << seed;
    shared += truth ? 1 : 0;
    apart += !truth && !overlaps(a, b) ? 1 : 0;
  }
  EXPECT_GE(shared, kCases / 10);
  EXPECT_GE(apart, kCases / 10);
}

// Two column ranges of one [rows, width] tensor, with or without a second inner axis.
TEST(Overlap, IsExactForColumnSlices) {
  constexpr int64_t kWidth = 12;
  int cases = 0;
  for (int64_t first = 0; first < kWidth; ++first) {
    for (int64_t first_size = 1; first + first_size <= kWidth; ++first_size) {
      for (int64_t second = 0; second < kWidth; ++second) {
        for (int64_t rows = 1; rows <= 3; ++rows) {
          const fmhc_in a{kGround + 4 * first, {rows, first_size}, {kWidth, 1}, 2, FMHC_FP32};
          const int64_t pairs = std::min<int64_t>(2, (kWidth - second) / 2);
          if (pairs == 0) continue;
          const fmhc_in b{kGround + 4 * second, {rows, pairs, 2}, {kWidth, 2, 1}, 3, FMHC_FP32};
          EXPECT_EQ(overlaps(a, b), share(bytes_of(a), bytes_of(b)))
              << first << "+" << first_size << " and " << second << "+" << 2 * pairs << ", rows " << rows;
          EXPECT_FALSE(overlaps_itself(a) || overlaps_itself(b));
          ++cases;
        }
      }
    }
  }
  EXPECT_GE(cases, 2000);
}

TEST(Overlap, EmptyAndAbsentTensorsTouchNothing) {
  const fmhc_in some{kGround, {4}, {1}, 1, FMHC_FP32};
  EXPECT_FALSE(overlaps(some, fmhc_in{}));
  EXPECT_FALSE(overlaps(some, fmhc_in{kGround, {4, 0}, {0, 1}, 2, FMHC_FP32}));
  EXPECT_TRUE(overlaps(some, some));
}

TEST(Overlap, SpansAreCheckedArithmetic) {
  int64_t bytes = 0;
  EXPECT_TRUE(byte_span({kGround, {3, 2}, {100, 1}, 2, FMHC_FP32}, &bytes));
  EXPECT_EQ(bytes, 4 * (2 * 100 + 1 + 1));
  EXPECT_TRUE(byte_span({kGround, {1, 2}, {INT64_MAX, 1}, 2, FMHC_FP32}, &bytes));  // never stepped along
  EXPECT_EQ(bytes, 8);
  EXPECT_FALSE(byte_span({kGround, {2}, {INT64_MAX / 2}, 1, FMHC_FP32}, &bytes));
  EXPECT_FALSE(byte_span({kGround, {3}, {INT64_MAX / 4}, 1, FMHC_FP32}, &bytes));
  EXPECT_FALSE(byte_span({kGround, {2}, {-1}, 1, FMHC_FP32}, &bytes));
}

}  // namespace
}  // namespace fmhc
