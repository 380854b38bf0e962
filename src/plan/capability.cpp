#include "plan/capability.h"

#include <cinttypes>
#include <cstring>
#include <iterator>
#include <tuple>

#include "core/dtype.h"

namespace fmhc {
namespace {

constexpr uint32_t bit(int32_t value) {
  return 1u << value;
}

constexpr uint32_t kAllOps = bit(FMHC_EXPAND) | bit(FMHC_PROJECT) | bit(FMHC_FINISH) | bit(FMHC_PRE) |
                             bit(FMHC_POST) | bit(FMHC_SEAM) | bit(FMHC_HEAD) | bit(FMHC_CONTRACT);
constexpr uint32_t kProjects = bit(FMHC_PROJECT) | bit(FMHC_PRE);
constexpr uint32_t kFinish = bit(FMHC_FINISH);
constexpr uint32_t kPost = bit(FMHC_POST);
constexpr uint32_t kPreSeam = bit(FMHC_PRE) | bit(FMHC_SEAM);
constexpr uint32_t kHalves = bit(FMHC_BF16) | bit(FMHC_FP16);
constexpr uint32_t kSingles = kHalves | bit(FMHC_FP32);
constexpr uint32_t kTf32 = bit(FMHC_CLASS_R);
constexpr uint32_t kTwoPieces = kTf32 | bit(FMHC_CLASS_F2);
constexpr uint32_t kExact = kTwoPieces | bit(FMHC_CLASS_F);
constexpr uint32_t kEngineNorm = bit(FMHC_NORM_NONE) | bit(FMHC_NORM_ENGINE);
constexpr uint32_t kAllNorms = kEngineNorm | bit(FMHC_NORM_UNFUSED);

// Operators that project nothing are of class F alone, hence kExact in rows of post and finish.
constexpr Capability kCapabilities[] = {
    // flashinfer-python 0.7 with DeepGEMM's prenorm GEMM, which truncates fn to tf32 and has bodies for sm_90
    // and the
    // sm_100 family.
    {.backend = "flashinfer",
     .ops = kProjects,
     .devices = kOnCuda,
     .arch_low = 90,
     .arch_high = 90,
     .hidden_multiple = 8,
     .classes = kTf32,
     .eps = Eps::kAboveZero},
    {.backend = "flashinfer",
     .ops = kProjects,
     .devices = kOnCuda,
     .arch_low = 100,
     .arch_high = 109,
     .hidden_multiple = 8,
     .classes = kTf32,
     .eps = Eps::kAboveZero},
    {.backend = "flashinfer",
     .ops = kFinish,
     .devices = kOnCuda,
     .hidden_multiple = 8,
     .classes = kExact,
     .eps = Eps::kAboveZero,
     .batch_invariant = true},
    {.backend = "flashinfer", .ops = kPost, .devices = kOnCuda, .classes = kExact, .batch_invariant = true},
    // The TileLang functions of SGLang 0.5.23: the same GEMM where it exists, else two sizes of K; the norm
    // takes its
    // square sum before rounding.
    {.backend = "tilelang",
     .ops = kPreSeam,
     .devices = kOnCuda,
     .arch_low = 90,
     .arch_high = 90,
     .hidden_multiple = 64,
     .classes = kTf32,
     .norms = kEngineNorm},
    {.backend = "tilelang",
     .ops = kPreSeam,
     .devices = kOnCuda,
     .arch_low = 100,
     .arch_high = 109,
     .hidden_multiple = 64,
     .classes = kTf32,
     .norms = kEngineNorm},
    {.backend = "tilelang",
     .ops = kPreSeam,
     .devices = kOnCuda,
     .hidden_multiple = 64,
     .flat = {16384, 28672},
     .classes = kTf32,
     .norms = kEngineNorm},
    {.backend = "tilelang", .ops = kPost, .devices = kOnCuda, .classes = kExact, .batch_invariant = true},
    // aiter: fp32 or two bf16 pieces, by shape. Its norm exists for four hidden sizes and is not counted on.
    {.backend = "aiter", .ops = kPreSeam, .devices = kOnAmd, .hidden_multiple = 256, .classes = kTwoPieces},
    {.backend = "aiter", .ops = kPost, .devices = kOnAmd, .hidden_multiple = 256, .classes = kExact},
    // Eager fp32 operators; a matmul picks its kernel by the token count.
    {.backend = "torch",
     .ops = kAllOps & ~(kProjects | kPreSeam | bit(FMHC_HEAD)),
     .devices = kOnCpu | kOnCuda | kOnAmd,
     .arch_low = 0,
     .dtypes = kSingles | bit(FMHC_FP64),
     .streams_low = 1,
     .streams_high = 8,
     .classes = kExact,
     .norms = kAllNorms,
     .carried_pre = true,
     .batch_invariant = true},
    {.backend = "torch",
     .ops = kProjects | kPreSeam | bit(FMHC_HEAD),
     .devices = kOnCpu | kOnCuda | kOnAmd,
     .arch_low = 0,
     .dtypes = kSingles | bit(FMHC_FP64),
     .streams_low = 1,
     .streams_high = 8,
     .classes = kExact,
     .norms = kAllNorms,
     .carried_pre = true},
    // liger_kernel 0.8 and TransformerEngine 2.20: training code with tf32 products; the latter's Sinkhorn
    // works on
    // logarithms.
    {.backend = "liger",
     .ops = kPreSeam,
     .devices = kOnCuda,
     .dtypes = kSingles,
     .streams_low = 1,
     .streams_high = 8,
     .classes = kTf32},
    {.backend = "liger",
     .ops = kPost,
     .devices = kOnCuda,
     .dtypes = kSingles,
     .streams_low = 1,
     .streams_high = 8,
     .classes = kExact},
    {.backend = "transformer_engine",
     .ops = bit(FMHC_PRE),
     .devices = kOnCuda,
     .dtypes = kHalves,
     .classes = kTf32,
     .eps = Eps::kNoneInSinkhorn},
    {.backend = "transformer_engine", .ops = kPost, .devices = kOnCuda, .dtypes = kHalves, .classes = kExact},
};

constexpr const char* kClassNames[] = {"", "F", "F2", "R"};
constexpr const char* kNormNames[] = {"none", "engine", "unfused"};

uint32_t device_bit(const Target& target, bool amd) {
  return target.device_kind == FMHC_CPU ? kOnCpu : amd ? kOnAmd : kOnCuda;
}

struct Case {
  const Capability& row;
  const Problem& problem;
  const Target& target;
  bool amd;
};

constexpr int32_t kNo = FMHC_UNSUPPORTED;

int32_t check_op(const Case& c, fmhc_diag* why) {
  if ((c.row.ops & bit(c.problem.op)) != 0) return FMHC_OK;
  return fail(why, kNo, "does no %s", find_op(c.problem.op)->name);
}

int32_t check_device(const Case& c, fmhc_diag* why) {
  if ((c.row.devices & device_bit(c.target, c.amd)) != 0) return FMHC_OK;
  return fail(why, kNo, "does no %s on a %s", find_op(c.problem.op)->name, device_name(c.target, c.amd));
}

int32_t check_arch(const Case& c, fmhc_diag* why) {
  if (device_bit(c.target, c.amd) != kOnCuda) return FMHC_OK;
  if (c.target.arch >= c.row.arch_low && c.target.arch <= c.row.arch_high) return FMHC_OK;
  return fail(why, kNo, "needs sm_%d%s, the target is sm_%d", c.row.arch_low,
              c.row.arch_high == INT32_MAX ? " or newer" : "", c.target.arch);
}

int32_t check_streams(const Case& c, fmhc_diag* why) {
  if (c.problem.streams >= c.row.streams_low && c.problem.streams <= c.row.streams_high) return FMHC_OK;
  return fail(why, kNo, "takes %d..%d streams, the problem has %d", c.row.streams_low, c.row.streams_high,
              c.problem.streams);
}

int32_t check_dtype(const Case& c, fmhc_diag* why) {
  if ((c.row.dtypes & bit(c.problem.residual_dtype)) != 0) return FMHC_OK;
  return fail(why, kNo, "takes no %s streams", dtype_name(c.problem.residual_dtype));
}

int32_t check_hidden(const Case& c, fmhc_diag* why) {
  if (c.problem.hidden % c.row.hidden_multiple == 0) return FMHC_OK;
  return fail(why, kNo, "needs hidden to be a multiple of %" PRId64 ", it is %" PRId64, c.row.hidden_multiple,
              c.problem.hidden);
}

int32_t check_flat(const Case& c, fmhc_diag* why) {
  const int64_t flat = flat_width(c.problem);
  if (c.row.flat[0] == 0 || flat == c.row.flat[0] || flat == c.row.flat[1]) return FMHC_OK;
  return fail(why, kNo,
              "without DeepGEMM (none for sm_%d) takes K of %" PRId64 " or %" PRId64 ", it is %" PRId64,
              c.target.arch, c.row.flat[0], c.row.flat[1], flat);
}

int32_t check_class(const Case& c, fmhc_diag* why) {
  if ((c.row.classes & bit(c.problem.projection)) != 0) return FMHC_OK;
  return fail(why, kNo, "its products are not of class %s", kClassNames[c.problem.projection]);
}

int32_t check_norm(const Case& c, fmhc_diag* why) {
  if ((c.row.norms & bit(c.problem.norm)) != 0) return FMHC_OK;
  return fail(why, kNo, "has no norm of kind %s", kNormNames[c.problem.norm]);
}

int32_t check_carried(const Case& c, fmhc_diag* why) {
  if (c.problem.carried_pre == 0 || c.row.carried_pre) return FMHC_OK;
  return fail(why, kNo, "carries no mix, carried_pre is 1");
}

int32_t check_invariant(const Case& c, fmhc_diag* why) {
  if (c.problem.batch_invariant == 0 || c.row.batch_invariant) return FMHC_OK;
  return fail(why, kNo, "its bits follow the token count, batch_invariant is 1");
}

int32_t check_eps(const Case& c, fmhc_diag* why) {
  const int32_t op = c.problem.op;
  const bool used = op == FMHC_FINISH || op == FMHC_PRE || op == FMHC_SEAM;
  const fmhc_consts& consts = c.problem.consts;
  const auto [rms, pre, sinkhorn] =
      std::tuple(static_cast<double>(consts.rms_eps), static_cast<double>(consts.pre_eps),
                 static_cast<double>(consts.sinkhorn_eps));
  if (used && c.row.eps == Eps::kAboveZero && !(rms > 0 && pre > 0 && sinkhorn > 0)) {
    return fail(why, kNo, "needs every eps above 0; rms_eps, pre_eps, sinkhorn_eps are %g, %g, %g", rms, pre,
                sinkhorn);
  }
  if (used && c.row.eps == Eps::kNoneInSinkhorn && sinkhorn > 0) {
    return fail(why, kNo, "adds no eps in its Sinkhorn, sinkhorn_eps is %g", sinkhorn);
  }
  return FMHC_OK;
}

// From the widest question to the narrowest: the row that passes most of them gives the reason.
constexpr int32_t (*kChecks[])(const Case&, fmhc_diag*) = {
    check_op,   check_device, check_arch, check_streams, check_dtype,     check_hidden,
    check_flat, check_class,  check_norm, check_carried, check_invariant, check_eps,
};

}  // namespace

const char* device_name(const Target& target, bool amd) {
  return target.device_kind == FMHC_CPU ? "CPU" : amd ? "AMD GPU" : "CUDA device";
}

int32_t can_serve(const char* backend, const Problem& problem, const Target& target, bool amd,
                  fmhc_diag* why) {
  size_t closest = 0;
  fail(why, kNo, "is not a backend whose abilities are known");
  for (const Capability& row : kCapabilities) {
    if (std::strcmp(row.backend, backend) != 0) continue;
    const Case question{row, problem, target, amd};
    fmhc_diag reason{};
    size_t passed = 0;
    while (passed < std::size(kChecks) && kChecks[passed](question, &reason) == FMHC_OK) ++passed;
    if (passed == std::size(kChecks)) return FMHC_OK;
    if (passed >= closest) {
      closest = passed;
      fail(why, kNo, "%s", reason.text);
    }
  }
  return kNo;
}

}  // namespace fmhc
