// Every combination of switches, availability and capability against rules written here a second time; a
// readable part of them against a stored table; the texts; what is refused.
#include "plan/resolve.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "fake_kernels.h"
#include "stored.h"

namespace fmhc {
namespace {

using Names = std::vector<std::string>;

// Foreign backends, whose availability varies, before those that are always there.
const char* const kNames[] = {"flashinfer", "tilelang",          "aiter", "torch", "cuda", "cpu", "ref",
                              "liger",      "transformer_engine"};
constexpr int kCount = 9;
constexpr int kVaried = 4;
const Names kAutoOrder = {"cuda", "cpu", "flashinfer", "tilelang", "aiter", "torch", "ref"};
const Names kSglangOrder = {"flashinfer", "tilelang", "aiter", "torch", "cuda", "cpu", "ref"};

constexpr KernelEntry kOurs[] = {
    test::row("cuda.portable.pre", FMHC_PRE, FMHC_CUDA, {}),
    test::row("cuda.portable.post", FMHC_POST, FMHC_CUDA, {}),
    test::row("cpu.avx2.pre", FMHC_PRE, FMHC_CPU, {}),
    test::row("ref.pre", FMHC_PRE, FMHC_CPU, {}),
};

// A problem, and who can do it on an NVIDIA and on an AMD device: stated by hand.
struct Subject {
  const char* label;
  int32_t op;
  const char* target;
  int32_t dtype, projection;
  int64_t hidden;
  Names nvidia, amd;
};

const Subject kSubjects[] = {
    {"pre",
     FMHC_PRE,
     "h200",
     FMHC_BF16,
     FMHC_CLASS_R,
     4096,
     {"flashinfer", "tilelang", "torch", "cuda", "liger"},
     {"aiter", "torch"}},
    {"post",
     FMHC_POST,
     "h200",
     FMHC_BF16,
     FMHC_CLASS_F,
     4096,
     {"flashinfer", "tilelang", "torch", "cuda", "liger", "transformer_engine"},
     {"aiter", "torch"}},
    {"pre class F", FMHC_PRE, "h200", FMHC_BF16, FMHC_CLASS_F, 4096, {"torch", "cuda"}, {"torch"}},
    {"pre fp32, H 250",
     FMHC_PRE,
     "h200",
     FMHC_FP32,
     FMHC_CLASS_R,
     250,
     {"torch", "cuda", "liger"},
     {"torch"}},
    {"pre on sm_80",
     FMHC_PRE,
     "a100",
     FMHC_BF16,
     FMHC_CLASS_R,
     4096,
     {"tilelang", "torch", "cuda", "liger"},
     {"aiter", "torch"}},
    {"pre on a CPU", FMHC_PRE, "cpu-avx2", FMHC_BF16, FMHC_CLASS_R, 4096, {"torch", "cpu", "ref"}, {}},
    {"seam",
     FMHC_SEAM,
     "h200",
     FMHC_BF16,
     FMHC_CLASS_R,
     4096,
     {"tilelang", "torch", "liger"},
     {"aiter", "torch"}},
};

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Setting {
  fmhc_switches switches{};
  fmhc_candidate candidates[kCount];

  Setting() {
    switches.struct_size = sizeof switches;
    for (int index = 0; index < kCount; ++index) {
      candidates[index] = {sizeof(fmhc_candidate), FMHC_AVAILABLE, kNames[index], "1.0", nullptr};
    }
  }

  int32_t availability(const std::string& name) const {
    for (const fmhc_candidate& candidate : candidates) {
      if (name == candidate.name) return candidate.availability;
    }
    return FMHC_ABSENT;
  }
};

// The rules, a second time.
std::string expected(const Subject& subject, const Setting& setting) {
  const fmhc_switches& switches = setting.switches;
  const auto works = [&](const std::string& name) {
    const int32_t availability = setting.availability(name);
    return holds(switches.amd != 0 ? subject.amd : subject.nvidia, name) &&
           (availability == FMHC_AVAILABLE ||
            (availability == FMHC_UNTESTED && switches.allow_untested != 0));
  };
  const std::string named = switches.backend == nullptr ? "auto" : switches.backend;
  if (named != "auto" && works(named)) return named;
  if (named != "auto" && switches.strict != 0) return "";
  const std::map<std::string, int32_t> engine = {{"flashinfer", switches.use_flashinfer},
                                                 {"tilelang", switches.use_tilelang},
                                                 {"aiter", switches.use_aiter}};
  for (const std::string& name : switches.order == FMHC_ORDER_AUTO ? kAutoOrder : kSglangOrder) {
    const bool off = switches.order == FMHC_ORDER_SGLANG && engine.count(name) != 0 && engine.at(name) == 0;
    if (!off && works(name)) return name;
  }
  return "";
}

Problem problem_of(const Subject& subject) {
  Problem problem = test::problem_of(subject.op, 1, subject.hidden);
  problem.residual_dtype = subject.dtype;
  problem.projection = subject.projection;
  return problem;
}

std::string chosen_name(const fmhc_verdict* verdicts) {
  std::string name;
  for (int index = 0; index < kCount; ++index) {
    if (verdicts[index].chosen != 0) name += kNames[index];
  }
  return name;
}

// Ranks are 0..8 each once, and every backend has a reason.
bool is_well_formed(const fmhc_verdict* verdicts) {
  unsigned ranks = 0;
  for (int index = 0; index < kCount; ++index) {
    ranks |= 1u << verdicts[index].rank;
    if (verdicts[index].reason[0] == '\0') return false;
  }
  return ranks == (1u << kCount) - 1;
}

TEST(Resolve, EveryCombination) {
  int64_t checked = 0;
  std::map<std::string, int64_t> chosen;
  for (const Subject& subject : kSubjects) {
    const Problem problem = problem_of(subject);
    const Target target = test::named_target(subject.target);
    Setting setting;
    fmhc_switches& switches = setting.switches;
    for (int bits = 0; bits < 128; ++bits) {
      switches.order = bits & 1;
      switches.strict = bits >> 1 & 1;
      switches.allow_untested = bits >> 2 & 1;
      switches.use_flashinfer = bits >> 3 & 1;
      switches.use_tilelang = bits >> 4 & 1;
      switches.use_aiter = bits >> 5 & 1;
      switches.amd = bits >> 6 & 1;
      if (switches.amd != 0 && target.device_kind == FMHC_CPU) continue;
      for (int named = -1; named < kCount; ++named) {
        switches.backend = named < 0 ? nullptr : kNames[named];
        for (int state = 0; state < 256; ++state) {
          // All four states for the first problem; there or not for the others, whose capabilities are the
          // point.
          if (&subject != &kSubjects[0] && (state & 0xaa) != 0) continue;
          for (int index = 0; index < kVaried; ++index) {
            setting.candidates[index].availability = 1 + (state >> (2 * index) & 3);
          }
          fmhc_verdict verdicts[kCount];
          fmhc_diag diag{};
          const int32_t code = resolve(kOurs, problem, target, switches, setting.candidates, verdicts, &diag);
          const std::string want = expected(subject, setting);
          ASSERT_EQ(code, want.empty() ? FMHC_UNSUPPORTED : FMHC_OK) << subject.label << ": " << diag.text;
          ASSERT_EQ(chosen_name(verdicts), want)
              << subject.label << " switches " << bits << " state " << state;
          ASSERT_TRUE(is_well_formed(verdicts));
          ASSERT_EQ(code == FMHC_OK, diag.text[0] == '\0');
          ++chosen[want];
          ++checked;
        }
      }
    }
  }
  std::printf("%lld combinations\n", static_cast<long long>(checked));
  for (const auto& [name, count] : chosen) {
    std::printf("  %-18s %lld\n", name.empty() ? "(none)" : name.c_str(), static_cast<long long>(count));
  }
  EXPECT_EQ(checked, 128 * 10 * 256 + (5 * 128 + 64) * 10 * 16);
  EXPECT_EQ(chosen.size(), 10u);  // each backend and none
}

const char* const kStates[] = {"", "available", "absent", "broken", "untested"};

TEST(Resolve, StoredTable) {
  std::string text =
      "op,order,use_flashinfer,use_tilelang,backend,strict,flashinfer is,chosen,why not flashinfer\n";
  int rows = 0;
  for (const Subject* subject : {&kSubjects[0], &kSubjects[1]}) {
    for (int bits = 0; bits < 16; ++bits) {
      for (const char* named : {"auto", "flashinfer"}) {
        for (int state = 1; state <= 4; ++state) {
          Setting setting;
          setting.switches.order = bits >> 3;
          setting.switches.use_flashinfer = bits >> 2 & 1;
          setting.switches.use_tilelang = bits >> 1 & 1;
          setting.switches.strict = bits & 1;
          setting.switches.backend = named;
          setting.candidates[0].availability = state;
          fmhc_verdict verdicts[kCount];
          fmhc_diag diag{};
          const int32_t code = resolve(kOurs, problem_of(*subject), test::named_target(subject->target),
                                       setting.switches, setting.candidates, verdicts, &diag);
          text += std::string(subject->label) + (bits >> 3 ? ",sglang," : ",auto,") +
                  (bits & 4 ? "on," : "off,") + (bits & 2 ? "on," : "off,") + named +
                  (bits & 1 ? ",yes," : ",no,") + kStates[state] + "," +
                  (code == FMHC_OK ? chosen_name(verdicts) : "none") + "," + verdicts[0].reason + "\n";
          ++rows;
        }
      }
    }
  }
  EXPECT_EQ(rows, 256);
  test::compare_with_stored("resolve_table.csv", text);
}

TEST(Resolve, ReasonsNameWhatWasCompared) {
  Setting setting;
  setting.switches.order = FMHC_ORDER_SGLANG;
  setting.switches.use_aiter = 1;
  setting.candidates[3] = {sizeof(fmhc_candidate), FMHC_UNTESTED, "torch", "9.9", "tested up to 2.13"};
  fmhc_verdict verdicts[kCount];
  fmhc_diag diag{};
  const Problem problem = problem_of(kSubjects[3]);
  ASSERT_EQ(resolve(kOurs, problem, test::named_target("h200"), setting.switches, setting.candidates,
                    verdicts, &diag),
            FMHC_OK);
  const char* const wants[] = {"use_flashinfer is 0",
                               "use_tilelang is 0",
                               "on a CUDA device",
                               "version 9.9 was not tested and allow_untested is 0: tested up to 2.13",
                               "first in order sglang",
                               "the target is a CUDA device",
                               "the target is a CUDA device",
                               "in no order",
                               "in no order"};
  for (int index = 0; index < kCount; ++index) {
    EXPECT_NE(std::strstr(verdicts[index].reason, wants[index]), nullptr) << verdicts[index].reason;
  }
}

TEST(Resolve, CapabilitiesNameTheValues) {
  struct Case {
    const char* backend;
    const char* target;
    void (*change)(Problem&);
    const char* text;
  };
  const Case cases[] = {
      {"flashinfer", "h200", [](Problem& p) { p.streams = 2; }, "takes 4..4 streams, the problem has 2"},
      {"flashinfer", "h200", [](Problem& p) { p.hidden = 4100; }, "multiple of 8, it is 4100"},
      {"flashinfer", "h200", [](Problem& p) { p.residual_dtype = FMHC_FP16; }, "no fp16 streams"},
      {"flashinfer", "h200", [](Problem& p) { p.projection = FMHC_CLASS_F2; }, "class F2"},
      {"flashinfer", "h200", [](Problem& p) { p.consts.pre_eps = 0; }, "1e-06, 0, 1e-06"},
      {"flashinfer", "h200", [](Problem& p) { p.carried_pre = 1; }, "carried_pre is 1"},
      {"flashinfer", "h200", [](Problem& p) { p.batch_invariant = 1; }, "batch_invariant is 1"},
      {"flashinfer", "l40s", [](Problem&) {}, "the target is sm_89"},
      {"flashinfer", "cpu-avx2", [](Problem&) {}, "on a CPU"},
      {"flashinfer", "h200", [](Problem& p) { p.op = FMHC_SEAM; }, "does no seam"},
      {"tilelang", "a100", [](Problem& p) { p.hidden = 5120; }, "16384 or 28672, it is 20480"},
      {"tilelang", "h200",
       [](Problem& p) {
         p.norm = FMHC_NORM_UNFUSED;
         p.norm_weight_dtype = FMHC_BF16;
       },
       "norm of kind unfused"},
      {"transformer_engine", "h200", [](Problem&) {}, "sinkhorn_eps is 1e-06"},
  };
  for (const Case& c : cases) {
    Problem problem = problem_of(kSubjects[0]);
    c.change(problem);
    Setting setting;
    setting.switches.backend = c.backend;
    setting.switches.strict = 1;
    fmhc_verdict verdicts[kCount];
    fmhc_diag diag{};
    EXPECT_EQ(resolve(kOurs, problem, test::named_target(c.target), setting.switches, setting.candidates,
                      verdicts, &diag),
              FMHC_UNSUPPORTED);
    for (int index = 0; index < kCount; ++index) {
      if (std::strcmp(kNames[index], c.backend) != 0) continue;
      EXPECT_NE(std::strstr(verdicts[index].reason, c.text), nullptr) << verdicts[index].reason;
    }
    EXPECT_NE(std::strstr(diag.text, "strict"), nullptr) << diag.text;
    EXPECT_NE(std::strstr(diag.text, c.text), nullptr) << diag.text;
  }
}

TEST(Resolve, RefusesBadArguments) {
  const Problem problem = problem_of(kSubjects[0]);
  const Target target = test::named_target("h200");
  const Target cpu = test::named_target("cpu-avx2");
  fmhc_verdict verdicts[kCount];
  int refused = 0;
  const auto refuse = [&](const Target& where, void (*change)(Setting&), int32_t count, const char* text) {
    Setting setting;
    change(setting);
    fmhc_diag diag{};
    EXPECT_EQ(fmhc_resolve(&problem, &where, &setting.switches, setting.candidates, count, verdicts, &diag),
              FMHC_INVALID);
    EXPECT_NE(std::strstr(diag.text, text), nullptr) << diag.text;
    ++refused;
  };
  refuse(
      target, [](Setting& s) { s.switches.order = 2; }, kCount, "switches.order is 2");
  refuse(
      target, [](Setting& s) { s.switches.backend = "x"; }, kCount, "switches.backend is \"x\"");
  refuse(
      target, [](Setting& s) { s.switches.struct_size = 4; }, kCount, "switches.struct_size is 4");
  refuse(
      cpu, [](Setting& s) { s.switches.amd = 1; }, kCount, "switches.amd is 1");
  refuse(
      target, [](Setting& s) { s.candidates[2].name = "x"; }, kCount, "candidates[2].name is \"x\"");
  refuse(
      target, [](Setting& s) { s.candidates[2].name = nullptr; }, kCount, "candidates[2].name");
  refuse(
      target, [](Setting& s) { s.candidates[1].availability = 0; }, kCount,
      "candidates[1].availability is 0");
  refuse(
      target, [](Setting& s) { s.candidates[1].name = "cuda"; }, kCount, "both \"cuda\"");
  refuse(
      target, [](Setting& s) { s.candidates[1].struct_size = 8; }, kCount, "candidates[1].struct_size is 8");
  refuse(
      target, [](Setting&) {}, -1, "count is -1");
  EXPECT_EQ(refused, 10);
  Setting setting;
  fmhc_diag diag{};
  EXPECT_EQ(fmhc_resolve(&problem, &target, &setting.switches, nullptr, 1, verdicts, &diag), FMHC_INVALID);
  EXPECT_EQ(fmhc_resolve(&problem, &target, nullptr, setting.candidates, 1, verdicts, &diag), FMHC_INVALID);
  EXPECT_EQ(fmhc_resolve(&problem, &target, &setting.switches, nullptr, 0, nullptr, &diag), FMHC_UNSUPPORTED);
}

}  // namespace
}  // namespace fmhc
