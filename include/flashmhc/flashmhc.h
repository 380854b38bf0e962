/* flashmhc.h - the C interface of FlashMHC: hyper-connections (mHC) of DeepSeek-V4-class models.
 *
 * Life of a call: fill an fmhc_problem -> fmhc_plan_make (cold: validates, chooses, prepares) -> fmhc_run
 * (hot: launches only). The caller owns all memory. Every function returns an fmhc_code; text goes to a
 * caller-owned fmhc_diag. Nothing here prints, throws, aborts or keeps caller memory. All symbols are safe to
 * call from any thread.
 *
 * Conventions: T tokens, n streams, H hidden, K = n*H, N = n*(2+n). Strides count elements. comb_mix[src,
 * dst]: the row is the old stream, the column the new one. Zero tokens is success and touches nothing. See
 * docs/operators.md for formulas. */
#ifndef FLASHMHC_H_
#define FLASHMHC_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define FMHC_API
#else
#define FMHC_API __attribute__((visibility("default")))
#endif

#define FMHC_VERSION_MAJOR 0
#define FMHC_VERSION_MINOR 1
#define FMHC_VERSION_PATCH 0
#define FMHC_ABI 1

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status
 * ------------------------------------------------------------------------------------------------------- */

typedef enum fmhc_code {
  FMHC_OK = 0,
  FMHC_INVALID =
      1, /* the caller's error: an argument is null, misshapen, mistyped, out of range, overlapping */
  FMHC_UNSUPPORTED = 2, /* legal, but no kernel of this build does it on this target; the text says why */
  FMHC_RESOURCE = 3,    /* out of memory or handles */
  FMHC_DEVICE_BEFORE =
      4, /* the device reported an error that was pending before this call; nothing was launched */
  FMHC_DEVICE_STICKY = 5, /* the device context is lost; the process cannot use it again */
  FMHC_INTERNAL = 6       /* a bug of this library */
} fmhc_code;

/* Caller-owned, may be NULL. Written only when a function does not return FMHC_OK. */
typedef struct fmhc_diag {
  int32_t code;
  char text[252];
} fmhc_diag;

/* ---- vocabulary
 * --------------------------------------------------------------------------------------------------- */

typedef enum fmhc_dtype { FMHC_BF16 = 1, FMHC_FP16 = 2, FMHC_FP32 = 3, FMHC_FP64 = 4 } fmhc_dtype;

typedef enum fmhc_op {
  FMHC_EXPAND = 1, /* R[t,j,:] = h[t,:] */
  FMHC_PROJECT =
      2, /* dot_mix[s,t,o] = sum_c R[t,c] fn[o,c], sqrsum[s,t] = sum_c R[t,c]^2, c in slice s of K */
  FMHC_FINISH = 3,  /* partials -> coefficients with Sinkhorn -> collapse (-> RMSNorm) */
  FMHC_PRE = 4,     /* project + finish */
  FMHC_POST = 5,    /* R'[t,k,:] = sum_j comb[t,j,k] R[t,j,:] + post[t,k] z[t,:] */
  FMHC_SEAM = 6,    /* post of one site + pre of the next */
  FMHC_HEAD = 7,    /* four logits, sigmoid + eps, collapse (-> final RMSNorm) */
  FMHC_CONTRACT = 8 /* mean of the streams, or with carried_pre the collapse by pre_in (-> RMSNorm) */
} fmhc_op;

/* Numerics class of the projection: what one product R * fn may lose. */
typedef enum fmhc_projection {
  FMHC_CLASS_F = 1, /* fp32-equivalent */
  FMHC_CLASS_F2 =
      2,           /* fn in two bf16 pieces, 16 bits of mantissa: relative error of a product at most 2^-16 */
  FMHC_CLASS_R = 3 /* tf32, fn rounded to nearest: at most 2^-11 */
} fmhc_projection;

/* RMSNorm of the layer input. Both multiply the value rounded to the storage dtype; they differ in the square
 * sum. */
typedef enum fmhc_norm {
  FMHC_NORM_NONE = 0,
  FMHC_NORM_ENGINE = 1, /* square sum of the unrounded collapse: what the serving engines' fused kernels do */
  FMHC_NORM_UNFUSED = 2 /* square sum of the rounded collapse: equal to pre followed by a separate RMSNorm */
} fmhc_norm;

typedef enum fmhc_quant { FMHC_QUANT_NONE = 0, FMHC_QUANT_E4M3_128 = 1, FMHC_QUANT_MXFP8_32 = 2 } fmhc_quant;

typedef enum fmhc_split_policy {
  FMHC_SPLIT_AUTO = 0,  /* ours: from the target's units, T and K; from K alone when batch_invariant */
  FMHC_SPLIT_SGLANG = 1 /* the rule of SGLang's FlashInfer branch: 1, 2, 4, 8 or 16 */
} fmhc_split_policy;

typedef enum fmhc_device { FMHC_CPU = 1, FMHC_CUDA = 2 } fmhc_device;

/* ---- tensors
 * ------------------------------------------------------------------------------------------------------ */

/* Absent: data NULL and rank 0. The last axis of residual, residual_out, sublayer_output, layer_input, fn,
 * norm_weight, dot_mix and sqrsum has stride 1. Stride 0 along the streams of `residual` broadcasts one
 * stream (the first layer). */
typedef struct fmhc_in {
  const void* data;
  int64_t shape[4], stride[4];
  int32_t rank, dtype;
} fmhc_in;

typedef struct fmhc_out {
  void* data;
  int64_t shape[4], stride[4];
  int32_t rank, dtype;
} fmhc_out;

/* ---- problem
 * ------------------------------------------------------------------------------------------------------ */

/* Model constants. There are no defaults: start from fmhc_preset or from the model's own configuration. */
typedef struct fmhc_consts {
  float rms_eps;          /* added to the mean square of K values, inside the root; >= 0 */
  float pre_eps;          /* added to the collapse weights after the sigmoid; >= 0 */
  float sinkhorn_eps;     /* added to every entry after the softmax and to every denominator; >= 0 */
  float post_mult;        /* factor of the output weights (2 in every released model) */
  float norm_eps;         /* of the optional RMSNorm; >= 0 */
  int32_t sinkhorn_iters; /* column steps, 1..1000; the softmax is the first row step */
} fmhc_consts;

typedef struct fmhc_problem {
  uint32_t struct_size;
  int32_t op;             /* fmhc_op */
  int32_t streams;        /* n, 1..8 */
  int32_t residual_dtype; /* storage dtype of the streams; FP64 only by the reference backend */
  int32_t projection;     /* fmhc_projection; ignored by no operator: must be F where nothing is projected */
  int32_t norm;           /* fmhc_norm */
  int32_t norm_weight_dtype; /* BF16, FP32 (FP64 with an FP64 residual); 0 when norm is none */
  int32_t quant;             /* fmhc_quant */
  int32_t carried_pre;       /* 1: collapse with pre_in and emit pre_mix (DeepSeek-V4.1) */
  int32_t batch_invariant;   /* 1: a token's bits do not depend on T, its position or its neighbours */
  int32_t coresident_units;  /* multiprocessors that may wait for one another; 0: no kernel waits across the
                                grid */
  int32_t pdl;               /* 1: programmatic dependent launch allowed */
  /* Promised alignment of base addresses and row strides of R, z, y and R'; 0: of one element. From 16 on a
     packed problem promises 16 bytes for fn, post_in and comb_in as well. */
  int32_t align_bytes;
  int32_t strided;    /* 1: tensors may have row strides or broadcast streams; 0: all are packed */
  int64_t hidden;     /* H >= 1 */
  int64_t max_tokens; /* the plan serves 0..max_tokens */
  fmhc_consts consts;
} fmhc_problem;

/* Where to run. Query it, name it, or fill it; lower num_units under MPS or a green context. */
typedef struct fmhc_target {
  uint32_t struct_size;
  int32_t device_kind;  /* fmhc_device */
  int32_t device_index; /* CUDA ordinal, 0 for the CPU */
  int32_t arch;         /* CUDA: 10*major+minor; CPU: bits of fmhc_cpu_feature */
  int32_t num_units;    /* multiprocessors, or CPU threads that the executor brings */
  int32_t reserved;
  int64_t smem_bytes;  /* shared memory a block may opt in to; 0 for the CPU */
  int64_t cache_bytes; /* L2 of the device, or of one core */
} fmhc_target;

typedef enum fmhc_cpu_feature {
  FMHC_CPU_SSE4 = 1,
  FMHC_CPU_AVX2 = 2,    /* with FMA, F16C, BMI */
  FMHC_CPU_AVX3 = 4,    /* AVX-512 F, BW, CD, DQ, VL */
  FMHC_CPU_AVX3_DL = 8, /* and VNNI, VBMI, VBMI2, BITALG, VPOPCNTDQ, GFNI, VAES, VPCLMULQDQ */
  FMHC_CPU_NEON = 16,
  FMHC_CPU_SVE = 32
} fmhc_cpu_feature;

/* Obeyed or refused, never adjusted. Zero or NULL leaves the choice to the planner. */
typedef struct fmhc_hints {
  uint32_t struct_size;
  int32_t split_k;      /* slices of K, 1..ceil(K/64) */
  int32_t split_policy; /* fmhc_split_policy; with split_k it must be 0 */
  int32_t reserved;
  const char*
      kernel; /* a kernel's name or a dotted prefix of it: "ref", "cpu.avx2", "cuda.sm90.seam.cluster16" */
} fmhc_hints;

/* A value: copyable, comparable, no pointers to caller memory. Belongs to this process and this build of the
 * library. */
typedef struct fmhc_plan {
  uint32_t struct_size, abi;
  uint64_t opaque[63];
} fmhc_plan;

/* Runs fn(arg, i) for every i in [0, count), in any order, on any threads, and returns when all are done. */
typedef struct fmhc_executor {
  void* ctx;
  int32_t threads; /* >= 1 */
  int32_t reserved;
  void (*parallel_for)(void* ctx, int64_t count, void (*fn)(void* arg, int64_t i), void* arg);
} fmhc_executor;

typedef struct fmhc_args {
  uint32_t struct_size, flags; /* flags: 0 */
  fmhc_in residual;            /* [T,n,H]; expand: the embedding [T,H] */
  fmhc_in sublayer_output;     /* [T,H], dtype of residual */
  fmhc_in post_in;             /* [T,n] fp32 */
  fmhc_in comb_in;             /* [T,n,n] fp32, [src, dst] */
  fmhc_in pre_in;              /* [T,n] fp32, carried_pre only */
  fmhc_in fn;                  /* [N,K] fp32; head: [n,K] */
  fmhc_in
      fn_packed; /* [fmhc_plan_packed bytes] as made by fmhc_prepare, when that is not 0; dtype 0, rank 1 */
  fmhc_in scale; /* [3] fp32: pre, post, comb; head: [1] */
  fmhc_in base;  /* [N] fp32; head: [n] */
  fmhc_in norm_weight;   /* [H] of norm_weight_dtype, when norm is not none */
  fmhc_in dot_mix_in;    /* [S,T,N] fp32, finish */
  fmhc_in sqrsum_in;     /* [S,T] fp32, finish */
  fmhc_out residual_out; /* [T,n,H]; may be `residual` itself in post and seam */
  fmhc_out layer_input;  /* [T,H], dtype of residual */
  fmhc_out post_mix;     /* [T,n] fp32 */
  fmhc_out comb_mix;     /* [T,n,n] fp32, [src, dst] */
  fmhc_out pre_mix; /* [T,n] fp32; required with carried_pre, else optional in finish, pre, seam and head */
  fmhc_out dot_mix; /* [S,T,N] fp32, project; S = fmhc_plan_split_k(plan, T) */
  fmhc_out sqrsum;  /* [S,T] fp32, project */
  fmhc_out quant;   /* reserved */
  fmhc_out quant_scale; /* reserved */
  void* scratch;        /* any contents, 256-byte aligned */
  void* state;          /* initialised by fmhc_state_init, one stream or one graph, 256-byte aligned */
  size_t scratch_bytes, state_bytes;
  void* stream;                  /* cudaStream_t; NULL on the CPU */
  const fmhc_executor* executor; /* CPU; NULL: the calling thread alone */
} fmhc_args;
/* With an FP64 residual every coefficient and partial above is fp64; fn, scale and base stay fp32. */

/* ---- plan and run
 * ------------------------------------------------------------------------------------------------- */

/* Validates, chooses a kernel for every token range, loads what it needs. `hints` may be NULL. */
FMHC_API int32_t fmhc_plan_make(const fmhc_problem* problem, const fmhc_target* target,
                                const fmhc_hints* hints, fmhc_plan* out, fmhc_diag* diag);

/* Answers without preparing anything: FMHC_OK exactly if fmhc_plan_make would succeed for a target of this
 * kind. */
FMHC_API int32_t fmhc_supported(const fmhc_problem* problem, const fmhc_target* target,
                                const fmhc_hints* hints, fmhc_diag* diag);

/* Why this plan: a JSON object with the ranges, every candidate kernel, its predicted microseconds or the
 * reason why it was refused (docs/planning.md has the schema). A problem that no kernel of this build serves
 * is explained too, planned with the kernels that are not built. Writes at most `capacity` bytes, NUL
 * included; *needed (may be NULL) gets the size for the whole text. json NULL with capacity 0 asks for the
 * size alone; too small a buffer is FMHC_RESOURCE and holds an empty string. */
FMHC_API int32_t fmhc_plan_explain(const fmhc_problem* problem, const fmhc_target* target,
                                   const fmhc_hints* hints, char* json, size_t capacity, size_t* needed,
                                   fmhc_diag* diag);

FMHC_API size_t fmhc_plan_scratch(const fmhc_plan* plan); /* bytes for max_tokens */
FMHC_API size_t fmhc_plan_state(const fmhc_plan* plan);
FMHC_API size_t fmhc_plan_packed(const fmhc_plan* plan); /* 0: reads fn as it is; else pass fn and fn_packed */
FMHC_API int32_t fmhc_plan_split_k(const fmhc_plan* plan,
                                   int64_t tokens); /* 0 for an invalid plan or count */
FMHC_API const char* fmhc_plan_kernel(const fmhc_plan* plan,
                                      int64_t tokens); /* static text; NULL if invalid */

FMHC_API int32_t fmhc_state_init(const fmhc_plan* plan, void* state, size_t bytes, void* stream,
                                 fmhc_diag* diag);

/* Once a weight: packs fn for plans with fmhc_plan_packed > 0 (refused for others). */
FMHC_API int32_t fmhc_prepare(const fmhc_plan* plan, const fmhc_in* fn, void* packed, size_t bytes,
                              void* stream, fmhc_diag* diag);

/* Launches. No allocation, lock, synchronisation or environment access; legal inside stream capture. Outputs
 * are untouched unless it returns FMHC_OK. */
FMHC_API int32_t fmhc_run(const fmhc_plan* plan, const fmhc_args* args, fmhc_diag* diag);

/* ---- targets, presets, build
 * -------------------------------------------------------------------------------------- */

FMHC_API int32_t fmhc_target_query(int32_t device_kind, int32_t device_index, fmhc_target* out,
                                   fmhc_diag* diag);
/* "a100", "l40s", "h100", "h200", "b200", "rtx5090", "cpu" ...; for planning on another machine. The diag of
 * an unknown name lists all. */
FMHC_API int32_t fmhc_target_named(const char* name, fmhc_target* out, fmhc_diag* diag);

/* "deepseek_v4", "deepseek_v41", "glm5", "paper": constants and carried_pre of the model; all else is left
 * alone. */
FMHC_API int32_t fmhc_preset(const char* model, fmhc_problem* inout, fmhc_diag* diag);

FMHC_API const char* fmhc_version(void); /* "0.1.0" */
FMHC_API int32_t fmhc_abi_version(void);
FMHC_API const char* fmhc_build_info(
    void); /* one JSON object: version, commit, compiler, backends and why one is off */
FMHC_API const char* fmhc_code_name(int32_t code); /* "FMHC_INVALID"; "unknown" otherwise */

/* Names of all kernels of the build, in table order; NULL past the end. */
FMHC_API const char* fmhc_kernel_name(int32_t index);

typedef struct fmhc_counters_t {
  uint32_t struct_size, reserved;
  uint64_t plans, runs, launches, prepares, module_loads, late_loads;
} fmhc_counters_t;
FMHC_API int32_t fmhc_counters(fmhc_counters_t* out);

/* ---- choosing between libraries
 * ----------------------------------------------------------------------------------- */

typedef enum fmhc_availability {
  FMHC_AVAILABLE = 1,
  FMHC_ABSENT = 2,  /* not installed */
  FMHC_BROKEN = 3,  /* installed, failed to load or failed its self-test */
  FMHC_UNTESTED = 4 /* installed in a version that was not tested */
} fmhc_availability;

/* What an adapter reports about a backend. Names: ours ("cuda", "cpu", "ref"), "flashinfer", "tilelang",
 * "aiter", "torch", and in comparisons "liger", "transformer_engine". */
typedef struct fmhc_candidate {
  uint32_t struct_size;
  int32_t availability; /* fmhc_availability */
  const char* name;
  const char* version; /* may be NULL */
  const char* detail;  /* why it is not available, may be NULL */
} fmhc_candidate;

typedef enum fmhc_order { FMHC_ORDER_AUTO = 0, FMHC_ORDER_SGLANG = 1 } fmhc_order;

/* The switches that a user or an engine has set. */
typedef struct fmhc_switches {
  uint32_t struct_size;
  int32_t order;          /* fmhc_order */
  int32_t strict;         /* 1: the named backend or an error */
  int32_t allow_untested; /* 1: an untested version is eligible */
  int32_t use_flashinfer; /* sglang order: off by default */
  int32_t use_tilelang;   /* sglang order */
  int32_t use_aiter;      /* sglang order, AMD devices only */
  int32_t amd;            /* 1: the device is an AMD GPU */
  const char* backend;    /* NULL or "auto": by order; else a backend's name */
} fmhc_switches;

typedef struct fmhc_verdict {
  int32_t chosen; /* 1 for exactly one candidate on success */
  int32_t rank;   /* place in the order, 0 first */
  char reason[248];
} fmhc_verdict;

/* Pure: the same arguments give the same answer. Writes one verdict a candidate, with a reason for each.
 * Returns FMHC_UNSUPPORTED when none can serve, naming the switches that exclude them. */
FMHC_API int32_t fmhc_resolve(const fmhc_problem* problem, const fmhc_target* target,
                              const fmhc_switches* switches, const fmhc_candidate* candidates, int32_t count,
                              fmhc_verdict* verdicts, fmhc_diag* diag);

#ifdef __cplusplus
}
#endif
#endif /* FLASHMHC_H_ */
