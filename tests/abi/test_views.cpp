// Strided views and aliasing, on every kernel that can be forced: a view gives the packed result bit for bit
// and leaves the gaps alone, the legal aliases give the result of separate memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "calls.h"

namespace abi_test {
namespace {

constexpr int kStorages[] = {FMHC_BF16, FMHC_FP16, FMHC_FP32, FMHC_FP64};

// Calls body(options) for every operator, variant, storage dtype and kernel; returns how often.
size_t for_each_kernel(int32_t strided, const std::function<void(const Options&)>& body) {
  size_t cases = 0;
  for (const Op& op : ops()) {
    for (Options options : variants_of(op)) {
      options.strided = strided;
      for (const int storage : kStorages) {
        options.storage = storage;
        for (const std::string& kernel : kernels_for(options)) {
          options.kernel = kernel.c_str();
          body(options);
          ++cases;
        }
        options.kernel = nullptr;
      }
    }
  }
  return cases;
}

struct Layout {
  const char* name;
  // Strides for a packed tensor; false if the layout does not apply to it.
  std::function<bool(const Slot&, fmhc_in*, int64_t* skip)> apply;
};

void pad_axis(fmhc_in* tensor, int axis, int64_t padding) {
  for (; axis >= 0; --axis) {
    tensor->stride[axis] += padding;
    padding *= axis > 0 ? tensor->shape[axis] : 1;
  }
}

bool is_small(const Slot& slot) {
  return !slot.wide;
}

const Layout kLayouts[] = {
    {"element offset of 8",
     [](const Slot&, fmhc_in*, int64_t* skip) {
       *skip = 8;
       return true;
     }},
    {"padded rows",
     [](const Slot&, fmhc_in* tensor, int64_t*) {
       if (tensor->rank < 2) return false;
       pad_axis(tensor, tensor->rank - 2, 24);
       return true;
     }},
    {"padded first axis, offset",
     [](const Slot&, fmhc_in* tensor, int64_t* skip) {
       if (tensor->rank < 2) return false;
       pad_axis(tensor, 0, 136);
       *skip = 8;
       return true;
     }},
    {"column slice of [T, 64]",
     [](const Slot& slot, fmhc_in* tensor, int64_t* skip) {
       if (!is_small(slot) || tensor->rank < 2) return false;
       tensor->stride[0] = 64;
       *skip = 5;
       return true;
     }},
    {"transposed last axes",
     [](const Slot& slot, fmhc_in* tensor, int64_t*) {
       if (!is_small(slot) || tensor->rank < 2) return false;
       std::swap(tensor->stride[tensor->rank - 1], tensor->stride[tensor->rank - 2]);
       if (tensor->rank == 2) {
         tensor->stride[0] = 1;
         tensor->stride[1] = tensor->shape[0];
       }
       return true;
     }},
    {"every third element",
     [](const Slot& slot, fmhc_in* tensor, int64_t* skip) {
       if (!is_small(slot)) return false;
       for (int64_t& stride : tensor->stride) stride *= 3;
       *skip = 1;
       return true;
     }},
};

// Applies the layout to `only`, or to every tensor; returns how many took it.
int lay_out(Call& call, const Layout& layout, const Slot* only) {
  int changed = 0;
  for (const Slot& each : slots()) {
    fmhc_in tensor = call.get(each);
    int64_t skip = 0;
    if (tensor.rank == 0 || (only != nullptr && only != &each) || !layout.apply(each, &tensor, &skip))
      continue;
    std::array<int64_t, 4> strides{};
    std::copy_n(tensor.stride, 4, strides.begin());
    call.place(each, strides, skip);
    ++changed;
  }
  return changed;
}

TEST(Views, EqualThePackedResult) {
  size_t views = 0;
  const size_t cases = for_each_kernel(1, [&](const Options& options) {
    Call packed(options);
    EXPECT_EQ(packed.run(), FMHC_OK) << options.describe() << ": " << packed.diag.text;
    const std::vector<unsigned char> wanted = packed.read_outputs();
    for (const Layout& layout : kLayouts) {
      std::vector<const Slot*> targets = {nullptr};
      for (const Slot& each : slots()) targets.push_back(&each);
      for (const Slot* only : targets) {
        Call call(options);
        if (lay_out(call, layout, only) == 0) continue;
        const std::string id =
            options.describe() + ", " + layout.name + " of " + (only == nullptr ? "all" : only->name);
        EXPECT_EQ(call.run(), FMHC_OK) << id << ": " << call.diag.text;
        EXPECT_EQ(call.read_outputs(), wanted) << id;
        EXPECT_TRUE(call.surroundings_intact()) << id;
        ++views;
      }
    }
  });
  std::printf("%zu views of %zu calls\n", views, cases);
  EXPECT_GE(cases, 52u);
  EXPECT_GE(views, 1000u);
}

// post and comb as two column slices of one [T, 24] tensor, as engines keep them.
TEST(Views, CoefficientsInOneTensor) {
  const size_t cases = for_each_kernel(1, [](const Options& options) {
    if (options.op != FMHC_PRE) return;
    Call apart(options);
    EXPECT_EQ(apart.run(), FMHC_OK) << apart.diag.text;
    Call joined(options);
    const fmhc_out comb = joined.args.comb_mix;
    const int32_t bytes = element_bytes(comb.dtype);
    Memory shared(static_cast<size_t>(options.tokens * 24 * bytes), 0xff);
    const auto slice = [&](fmhc_out* tensor, int64_t column) {
      tensor->data = shared.data() + column * bytes;
      tensor->stride[0] = 24;
    };
    slice(&joined.args.pre_mix, 0);
    slice(&joined.args.post_mix, 4);
    slice(&joined.args.comb_mix, 8);
    EXPECT_EQ(joined.run(), FMHC_OK) << options.describe() << ": " << joined.diag.text;
    EXPECT_EQ(joined.read_outputs(), apart.read_outputs()) << options.describe();
    EXPECT_TRUE(shared.guards_intact());
    slice(&joined.args.comb_mix, 7);
    EXPECT_EQ(joined.run(), FMHC_INVALID) << "one shared column";
  });
  EXPECT_GE(cases, 1u);
}

// Stride 0 along the streams equals four copies of the stream.
TEST(Views, BroadcastStreamsEqualCopies) {
  const size_t cases = for_each_kernel(1, [](const Options& options) {
    if (options.op == FMHC_EXPAND) return;
    Call broadcast(options);
    broadcast.place(slot("residual"), {options.hidden, 0, 1, 0}, 0);
    Call copies(options);
    const std::vector<unsigned char> streams = broadcast.read(slot("residual"));
    std::copy(streams.begin(), streams.end(),
              static_cast<unsigned char*>(const_cast<void*>(copies.args.residual.data)));
    EXPECT_EQ(broadcast.run(), FMHC_OK) << options.describe() << ": " << broadcast.diag.text;
    EXPECT_EQ(copies.run(), FMHC_OK);
    EXPECT_EQ(broadcast.read_outputs(), copies.read_outputs()) << options.describe();
  });
  EXPECT_GE(cases, 1u);
}

TEST(Aliasing, InPlaceEqualsOutOfPlace) {
  constexpr int kRepeats = 100;
  size_t in_place = 0;
  for_each_kernel(0, [&](const Options& options) {
    if (!op_of(options.op).in_place) return;
    Call apart(options);
    EXPECT_EQ(apart.run(), FMHC_OK) << apart.diag.text;
    const std::vector<unsigned char> wanted = apart.read_outputs();
    int equal = 0;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      Call call(options);
      call.args.residual_out.data = const_cast<void*>(call.args.residual.data);
      EXPECT_EQ(call.run(), FMHC_OK) << options.describe() << ": " << call.diag.text;
      equal += call.read_outputs() == wanted ? 1 : 0;
    }
    EXPECT_EQ(equal, kRepeats) << options.describe();
    ++in_place;
  });
  EXPECT_GE(in_place, 12u);  // post, seam and carried seam in four dtypes, by the reference at least
}

// The legal form is exact: other strides over the same memory are an overlap.
TEST(Aliasing, InPlaceNeedsEqualStrides) {
  Options options;
  options.op = FMHC_POST;
  options.strided = 1;
  Call call(options);
  call.place(slot("residual"), {512, 64, 1, 0}, 0);
  call.args.residual_out.data = const_cast<void*>(call.args.residual.data);
  EXPECT_EQ(call.run(), FMHC_INVALID);
  call.args.residual_out.stride[0] = 512;
  EXPECT_EQ(call.run(), FMHC_OK) << call.diag.text;
}

// Inputs may share memory: one embedding serves as residual and as sublayer output.
TEST(Aliasing, InputsMayOverlap) {
  Options options;
  options.op = FMHC_POST;
  Call call(options);
  call.args.sublayer_output.data = call.args.residual.data;
  EXPECT_EQ(call.run(), FMHC_OK) << call.diag.text;
}

}  // namespace
}  // namespace abi_test
