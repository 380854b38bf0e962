// Scratch, state and packed weights, which no kernel of a CPU build needs all of: the checks are asked
// directly with the needs of an invented plan.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>

#include "ops/check_args.h"

namespace fmhc {
namespace {

constexpr PlanNeeds kNeeds = {1024, 512, 256, Weights::kPacked, FMHC_CUDA};

// A head of two streams whose weight is packed; tensors of T = 2, H = 4.
struct Fixture {
  alignas(256) std::array<unsigned char, 2048> scratch{};
  alignas(256) std::array<unsigned char, 1024> state{};
  alignas(256) std::array<unsigned char, 256> packed{};
  std::array<float, 16> residual{};
  std::array<float, 8> layer_input{};
  float scale = 1;
  std::array<float, 2> base{};
  fmhc_args args{};
  Problem problem{};

  Fixture() {
    problem.op = FMHC_HEAD;
    problem.streams = 2;
    problem.residual_dtype = FMHC_FP32;
    problem.hidden = 4;
    problem.max_tokens = 2;
    args.residual = {residual.data(), {2, 2, 4}, {8, 4, 1}, 3, FMHC_FP32};
    args.fn_packed = {packed.data(), {256}, {1}, 1, 0};
    args.scale = {&scale, {1}, {1}, 1, FMHC_FP32};
    args.base = {base.data(), {2}, {1}, 1, FMHC_FP32};
    args.layer_input = {layer_input.data(), {2, 4}, {4, 1}, 2, FMHC_FP32};
    args.scratch = scratch.data();
    args.scratch_bytes = kNeeds.scratch_bytes;
    args.state = state.data();
    args.state_bytes = kNeeds.state_bytes;
  }
  int32_t check(fmhc_diag* diag) const { return check_args(problem, kNeeds, 2, 1, args, diag); }
};

TEST(MemoryChecks, AcceptWhatThePlanAskedFor) {
  Fixture fixture;
  fmhc_diag diag{};
  EXPECT_EQ(fixture.check(&diag), FMHC_OK) << diag.text;
  fixture.args.scratch_bytes += 1;
  fixture.args.stream = &fixture;  // a CUDA plan has streams
  EXPECT_EQ(fixture.check(&diag), FMHC_OK) << diag.text;
}

TEST(MemoryChecks, RefuseByName) {
  const struct {
    const char* text;  // how the message begins
    std::function<void(Fixture&)> spoil;
  } faults[] = {
      {"scratch is NULL", [](Fixture& f) { f.args.scratch = nullptr; }},
      {"scratch is 0x", [](Fixture& f) { f.args.scratch = f.scratch.data() + 128; }},
      {"scratch_bytes is 1023; expected at least 1024", [](Fixture& f) { f.args.scratch_bytes = 1023; }},
      {"state is NULL", [](Fixture& f) { f.args.state = nullptr; }},
      {"state is 0x", [](Fixture& f) { f.args.state = f.state.data() + 16; }},
      {"state_bytes is 511; expected at least 512", [](Fixture& f) { f.args.state_bytes = 511; }},
      {"scratch overlaps state", [](Fixture& f) { f.args.state = f.scratch.data() + 512; }},
      {"scratch overlaps layer_input", [](Fixture& f) { f.args.layer_input.data = f.scratch.data() + 1000; }},
      {"scratch overlaps residual", [](Fixture& f) { f.args.residual.data = f.scratch.data(); }},
      {"state overlaps layer_input", [](Fixture& f) { f.args.layer_input.data = f.state.data() + 508; }},
      {"fn_packed is absent", [](Fixture& f) { f.args.fn_packed = {}; }},
      {"fn_packed.shape[0] is 255; expected 256", [](Fixture& f) { f.args.fn_packed.shape[0] = 255; }},
      {"fn_packed.dtype is fp32 (3); expected 0 (bytes)",
       [](Fixture& f) { f.args.fn_packed.dtype = FMHC_FP32; }},
  };
  for (const auto& fault : faults) {
    Fixture fixture;
    fault.spoil(fixture);
    fmhc_diag diag{};
    EXPECT_EQ(fixture.check(&diag), FMHC_INVALID) << fault.text;
    EXPECT_EQ(std::strncmp(diag.text, fault.text, std::strlen(fault.text)), 0)
        << "\"" << diag.text << "\", wanted \"" << fault.text << "\"";
  }
}

TEST(MemoryChecks, NothingIsNeededForNoTokens) {
  Fixture fixture;
  fixture.args.residual.shape[0] = fixture.args.layer_input.shape[0] = 0;
  fixture.args.scratch = fixture.args.state = nullptr;
  fmhc_diag diag{};
  EXPECT_EQ(check_args(fixture.problem, kNeeds, 0, 1, fixture.args, &diag), FMHC_OK) << diag.text;
}

TEST(MemoryChecks, AlignmentThatTheProblemPromises) {
  alignas(16) static std::array<float, 40> rows{};
  Fixture fixture;
  fixture.problem.align_bytes = 16;
  fixture.problem.strided = 1;
  fixture.args.residual.data = rows.data();
  fixture.args.layer_input.data = rows.data() + 20;
  fmhc_diag diag{};
  EXPECT_EQ(fixture.check(&diag), FMHC_OK) << diag.text;
  fixture.args.residual.stride[0] = 9;
  EXPECT_EQ(fixture.check(&diag), FMHC_INVALID);
  EXPECT_STREQ(diag.text, "residual.stride[0] is 9 elements; expected a multiple of 16 bytes");
  fixture.args.residual.stride[0] = 8;
  fixture.args.residual.data = rows.data() + 1;
  EXPECT_EQ(fixture.check(&diag), FMHC_INVALID);
  EXPECT_EQ(std::strncmp(diag.text, "residual.data is", 16), 0) << diag.text;
}

}  // namespace
}  // namespace fmhc
