// Token counts around every power of two that launch code likes, row offsets that need 64 bits, and the bytes
// around the outputs, on every kernel that can be forced.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "calls.h"

namespace abi_test {
namespace {

// Calls body(options) for every operator, the first `variants` of its options, and every kernel.
size_t for_each_kernel(const Options& base, size_t variants,
                       const std::function<void(const Options&)>& body) {
  size_t cases = 0;
  for (const Op& op : ops()) {
    std::vector<Options> list = variants_of(op);
    list.resize(std::min(list.size(), variants));
    for (Options options : list) {
      options.hidden = base.hidden;
      options.tokens = options.max_tokens = base.tokens;
      options.iters = base.iters;
      options.strided = base.strided;
      options.splits = base.splits;
      for (const std::string& kernel : kernels_for(options)) {
        options.kernel = kernel.c_str();
        body(options);
        ++cases;
      }
    }
  }
  return cases;
}

// The axis that counts tokens, or -1.
int token_axis(const Slot& slot) {
  const size_t axis = slot.shape.find('T');
  return axis == std::string_view::npos ? -1 : static_cast<int>(axis);
}

Options small_rows(int64_t tokens) {
  Options options;
  options.tokens = tokens;
  options.hidden = 8;
  options.splits = 1;
  options.iters = 2;
  return options;
}

TEST(Sizes, NothingIsWrittenAroundTheOutputs) {
  std::vector<int64_t> counts = {255, 256, 257, 1021};
  for (int64_t tokens = 1; tokens <= 130; ++tokens) counts.push_back(tokens);
  size_t cases = 0;
  for (const int64_t tokens : counts) {
    cases += for_each_kernel(small_rows(tokens), 2, [](const Options& options) {
      Call call(options);
      EXPECT_EQ(call.run(), FMHC_OK) << options.describe() << ": " << call.diag.text;
      EXPECT_TRUE(call.surroundings_intact()) << options.describe();
    });
  }
  EXPECT_GE(cases, 13 * counts.size());
}

// A call of `kRows` tokens on the rows of `whole` from `first` on; its outputs are its own.
void point_at_rows(const Call& whole, int64_t first, Call* part) {
  for (const Slot& each : slots()) {
    const int axis = token_axis(each);
    if (axis < 0 || each.output || !part->used(each)) continue;
    const fmhc_in source = whole.get(each);
    fmhc_in tensor = part->get(each);
    tensor.data =
        static_cast<const char*>(source.data) + first * source.stride[axis] * element_bytes(source.dtype);
    part->set(each, tensor);
  }
}

#if defined(FMHC_TEST_SANITIZED)
constexpr int64_t kManyTokens[] = {65537};  // ten times slower, and no other code
#else
constexpr int64_t kManyTokens[] = {65535, 65536, 65537, 131073};
#endif

TEST(Sizes, ManyTokensEqualFewAtBothEnds) {
  constexpr int64_t kRows = 16;
  size_t cases = 0;
  for (const int64_t tokens : kManyTokens) {
    Options base = small_rows(tokens);
    base.hidden = 1;
    cases += for_each_kernel(base, 1, [&](const Options& options) {
      Call whole(options);
      EXPECT_EQ(whole.run(), FMHC_OK) << options.describe() << ": " << whole.diag.text;
      Options few = options;
      few.tokens = kRows;
      for (const int64_t first : {int64_t{0}, tokens - kRows}) {
        Call part(few);
        point_at_rows(whole, first, &part);
        EXPECT_EQ(part.run(), FMHC_OK) << part.diag.text;
        for (const Slot& each : slots()) {
          if (!each.output || !part.used(each)) continue;
          const std::vector<unsigned char> wanted = part.read(each);
          const fmhc_in out = whole.get(each);
          const int64_t row = out.stride[token_axis(each)] * element_bytes(out.dtype);
          EXPECT_EQ(
              std::memcmp(static_cast<const char*>(out.data) + first * row, wanted.data(), wanted.size()), 0)
              << options.describe() << ": " << each.name << " from row " << first;
        }
      }
    });
  }
  EXPECT_GE(cases, std::size(kManyTokens) * ops().size());
}

// Memory that is reserved, not committed: a page exists once it is touched.
class Sparse {
 public:
  explicit Sparse(size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0)) {}
  ~Sparse() {
    if (ok()) munmap(data_, bytes_);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  char* data() const { return static_cast<char*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

// Rows 2^30 elements apart: a 32-bit offset would wrap at the third one.
TEST(Sizes, RowOffsetsAre64Bit) {
  constexpr int64_t kPitch = int64_t{1} << 30;
  Options base;
  base.strided = 1;
  const size_t cases = for_each_kernel(base, 2, [&](const Options& options) {
    Call packed(options);
    EXPECT_EQ(packed.run(), FMHC_OK) << packed.diag.text;
    Call far(options);
    std::vector<std::unique_ptr<Sparse>> regions;
    for (const Slot& each : slots()) {
      fmhc_in tensor = far.get(each);
      if (!far.used(each) || token_axis(each) != 0) continue;
      const int64_t row = tensor.stride[0] * element_bytes(tensor.dtype);
      const int64_t pitch = kPitch * element_bytes(tensor.dtype);
      regions.push_back(std::make_unique<Sparse>(static_cast<size_t>(pitch * options.tokens)));
      ASSERT_TRUE(regions.back()->ok()) << "cannot reserve address space";
      for (int64_t t = 0; t < options.tokens; ++t) {
        std::memcpy(regions.back()->data() + t * pitch, static_cast<const char*>(tensor.data) + t * row,
                    static_cast<size_t>(row));
      }
      tensor.data = regions.back()->data();
      tensor.stride[0] = kPitch;
      far.set(each, tensor);
    }
    EXPECT_GE(regions.size(), 1u);
    EXPECT_EQ(far.run(), FMHC_OK) << options.describe() << ": " << far.diag.text;
    EXPECT_EQ(far.read_outputs(), packed.read_outputs()) << options.describe();
  });
  EXPECT_GE(cases, 13u);
}

}  // namespace
}  // namespace abi_test
