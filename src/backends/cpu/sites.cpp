// The operators that read the streams of a whole site: project, finish, pre, seam, head, contract. Tokens go
// through in blocks that stay in the second-level cache from the first stage to the last, so the streams
// cross the memory bus once; every operator is a choice of the same steps over a block.
#include "backends/cpu/entries.h"
#include "backends/cpu/post.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/unrounded.h"
#include "core/arena.h"
#include "core/mutant.h"
#include "ops/slices.h"

namespace fmhc::cpu {
namespace {

// What one worker owns. Arrays named [x, kBlockTokens] hold one column a token.
struct Work {
  float* wide = nullptr;         // [kSubTokens, kWideStride]
  float* totals = nullptr;       // [kBlockTokens, logits + 1, kMaxLanes]
  float* dot = nullptr;          // [logits, kBlockTokens]
  float* sqrsum = nullptr;       // [kBlockTokens]
  float* pre = nullptr;          // [streams, kBlockTokens]
  float* post = nullptr;         // [streams, kBlockTokens]
  float* comb = nullptr;         // [streams * streams, kBlockTokens]
  float* norm_weight = nullptr;  // [hidden], for a bf16 weight
};

Work carve(const Problem& problem, Arena* arena) {
  Work work;
  const int64_t n = problem.streams;
  const int64_t logits = logit_count(problem);
  if (find_op(problem.op)->projects) {
    work.wide = arena->take<float>(kSubTokens * kWideStride);
    work.totals = arena->take<float>(kBlockTokens * (logits + 1) * kMaxLanes);
  }
  work.dot = arena->take<float>(logits * kBlockTokens);
  work.sqrsum = arena->take<float>(kBlockTokens);
  work.pre = arena->take<float>(n * kBlockTokens);
  work.post = arena->take<float>(n * kBlockTokens);
  work.comb = arena->take<float>(n * n * kBlockTokens);
  if (problem.norm_weight_dtype == FMHC_BF16) work.norm_weight = arena->take<float>(problem.hidden);
  return work;
}

bool needs_work(const Problem& problem) {
  return problem.op != FMHC_EXPAND && problem.op != FMHC_POST;
}

size_t piece_bytes(const Problem& problem) {
  Arena arena;
  carve(problem, &arena);
  return arena.used();
}

int64_t piece_count(const Target& target, int64_t tokens, int32_t split_k) {
  return min64(target.num_units, max64(tokens, 1) * max64(split_k, 1));
}

// Half of the cache for the streams of a block, and no fewer blocks than workers.
int64_t block_tokens(const Launch& launch) {
  const Problem& problem = launch.problem;
  const int64_t token_bytes = flat_width(problem) * dtype_bytes(problem.residual_dtype);
  const int64_t by_cache = launch.target.cache_bytes / 2 / token_bytes / 4 * 4;
  const fmhc_executor* executor = launch.args.executor;
  const int64_t threads = executor == nullptr ? 1 : min64(executor->threads, launch.target.num_units);
  const int64_t by_threads = ceil_div(launch.tokens, threads);
  return max64(1, min64(min64(kBlockTokens, max64(by_cache, 4)), by_threads));
}

struct Block {
  int64_t first;
  int32_t tokens;
};

class Site {
 public:
  Site(const Stages& stages, const Launch& launch) : stages_(stages), launch_(launch) {
    gather_vector(launch.args.scale, scale_);
    gather_vector(launch.args.base, base_);
  }

  // step(work, block, slice) for every block of tokens and every slice of K, on the caller's threads.
  template <typename Step>
  int32_t for_blocks(int32_t slices, const Step& step) const {
    const int64_t most = block_tokens(launch_);
    const int64_t tasks = ceil_div(launch_.tokens, most) * slices;
    const fmhc_executor* executor = launch_.args.executor;
    const int64_t pieces = piece_count(launch_.target, launch_.tokens, slices);
    run_blocks(executor, worker_count(executor, tasks, pieces), tasks, [&](int64_t worker, int64_t task) {
      const int64_t first = task / slices * most;
      const auto tokens = static_cast<int32_t>(min64(most, launch_.tokens - first));
      step(work_of(worker), Block{first, tokens}, static_cast<int32_t>(task % slices));
    });
    return FMHC_OK;
  }

  // One slice of the streams into the caller's partials.
  void project_slice(const Work& work, const Block& block, int32_t slice) const {
    const fmhc_out& dot = launch_.args.dot_mix;
    const fmhc_out& sqrsum = launch_.args.sqrsum;
    ProjectBlock args = project_args(work, block, Rows(launch_.args.residual));
    const Slice columns = slice_of(flat_width(launch_.problem), launch_.split_k, slice);
    args.begin = columns.begin;
    args.end = columns.end;
    args.dot = static_cast<float*>(dot.data) + slice * dot.stride[0] + block.first * dot.stride[1];
    args.dot_token_stride = dot.stride[1];
    args.dot_logit_stride = 1;
    args.sqrsum =
        static_cast<float*>(sqrsum.data) + slice * sqrsum.stride[0] + block.first * sqrsum.stride[1];
    args.sqrsum_stride = sqrsum.stride[1];
    stages_.project(args);
  }

  // All of K in one slice, kept in the work memory.
  void project_whole(const Work& work, const Block& block, const Rows& streams) const {
    project_into(work, project_args(work, block, streams));
  }

#if defined(FMHC_MUTANTS)
  // `streams` [block.tokens, streams, hidden].
  void project_unrounded(const Work& work, const Block& block, const float* streams) const {
    ProjectBlock args = project_args(work, block, Rows(launch_.args.residual_out));
    args.dtype = FMHC_FP32;
    args.residual = streams;
    args.token_stride = flat_width(launch_.problem);
    args.stream_stride = launch_.problem.hidden;
    project_into(work, args);
  }
#endif

  // The caller's partials, slices in ascending order.
  void add_partials(const Work& work, const Block& block) const {
    const fmhc_in& dot = launch_.args.dot_mix_in;
    const fmhc_in& sqrsum = launch_.args.sqrsum_in;
    const auto sum = [&](const float* from, int64_t slice_stride) {
      const int32_t splits = launch_.split_k - (mutant(Mutant::kSplitDropped) ? 1 : 0);
      float total = from[0];
      for (int32_t s = 1; s < splits; ++s) total += from[s * slice_stride];
      return total;
    };
    for (int32_t t = 0; t < block.tokens; ++t) {
      const float* dots = static_cast<const float*>(dot.data) + (block.first + t) * dot.stride[1];
      const float* squares = static_cast<const float*>(sqrsum.data) + (block.first + t) * sqrsum.stride[1];
      for (int64_t o = 0; o < logit_count(launch_.problem); ++o) {
        work.dot[o * kBlockTokens + t] = sum(dots + o, dot.stride[0]);
      }
      work.sqrsum[t] = sum(squares, sqrsum.stride[0]);
    }
  }

  // Coefficients from the dots in the work memory, and out to the caller.
  void make_coefficients(const Work& work, const Block& block) const {
    const Problem& problem = launch_.problem;
    const fmhc_args& args = launch_.args;
    stages_.coefficients({block.tokens,
                          problem.streams,
                          problem.op == FMHC_HEAD,
                          work.dot,
                          work.sqrsum,
                          {scale_[0], scale_[1], scale_[2]},
                          base_,
                          static_cast<float>(flat_width(problem)),
                          problem.consts,
                          work.pre,
                          work.post,
                          work.comb});
    for (int32_t t = 0; t < block.tokens; ++t) {
      const int32_t column = mutant(Mutant::kNeighbourCoefficients) ? (t + 1) % block.tokens : t;
      scatter_small(work.pre + column, block.first + t, problem.streams, args.pre_mix);
      scatter_small(work.post + column, block.first + t, problem.streams, args.post_mix);
      scatter_small(work.comb + column, block.first + t, problem.streams, args.comb_mix);
    }
  }

  // Layer inputs: with the carried mix if there is one, else with the work memory's.
  void collapse(const Work& work, const Block& block, const Rows& streams, float divisor = 1.0f) const {
    const Problem& problem = launch_.problem;
    const float* norm_weight = problem.norm == FMHC_NORM_NONE ? nullptr : read_norm_weight(work);
    const OutRows out(launch_.args.layer_input);
    float weights[kMaxStreams];
    for (int32_t t = 0; t < block.tokens; ++t) {
      const int64_t token = block.first + t;
      if (problem.carried_pre != 0) {
        gather_small(launch_.args.pre_in, token, problem.streams, weights);
      } else {
        for (int32_t j = 0; j < problem.streams; ++j) weights[j] = work.pre[j * kBlockTokens + t];
      }
      stages_.collapse({problem.residual_dtype, problem.streams, problem.norm, divisor,
                        problem.consts.norm_eps, problem.hidden, streams.at(token), streams.stream_stride,
                        weights, norm_weight, out.at(token)});
    }
  }

 private:
  void project_into(const Work& work, ProjectBlock args) const {
    args.begin = 0;
    args.end = flat_width(launch_.problem);
    args.dot = work.dot;
    args.dot_token_stride = 1;
    args.dot_logit_stride = kBlockTokens;
    args.sqrsum = work.sqrsum;
    args.sqrsum_stride = 1;
    stages_.project(args);
  }

  static void gather_vector(const fmhc_in& tensor, float* to) {
    const auto* from = static_cast<const float*>(tensor.data);
    for (int64_t i = 0; from != nullptr && i < tensor.shape[0]; ++i) to[i] = from[i * tensor.stride[0]];
  }

  Work work_of(int64_t worker) const {
    auto* scratch = static_cast<unsigned char*>(launch_.args.scratch);
    Arena arena(scratch + static_cast<size_t>(worker) * piece_bytes(launch_.problem));
    return carve(launch_.problem, &arena);
  }

  ProjectBlock project_args(const Work& work, const Block& block, const Rows& streams) const {
    const Problem& problem = launch_.problem;
    const fmhc_in& fn = launch_.args.fn;
    ProjectBlock args{};
    args.dtype = problem.residual_dtype;
    args.streams = problem.streams;
    args.tokens = block.tokens;
    args.logits = static_cast<int32_t>(logit_count(problem));
    args.hidden = problem.hidden;
    args.residual = streams.at(block.first);
    args.token_stride = streams.token_stride;
    args.stream_stride = streams.stream_stride;
    args.fn = static_cast<const float*>(fn.data);
    args.fn_stride = fn.shape[0] > 1 ? fn.stride[0] : 0;
    args.wide = work.wide;
    args.totals = work.totals;
    return args;
  }

  const float* read_norm_weight(const Work& work) const {
    const fmhc_in& tensor = launch_.args.norm_weight;
    if (tensor.dtype == FMHC_FP32) return static_cast<const float*>(tensor.data);
    const auto* from = static_cast<const Bf16*>(tensor.data);
    for (int64_t h = 0; h < launch_.problem.hidden; ++h) work.norm_weight[h] = widen(from[h]);
    return work.norm_weight;
  }

  const Stages& stages_;
  const Launch& launch_;
  float scale_[3] = {};
  float base_[kMaxLogits] = {};
};

}  // namespace

size_t scratch_bytes(const Problem& problem, const Target& target, int64_t tokens, int32_t split_k) {
  if (!needs_work(problem)) return 0;
  if (mutant(Mutant::kScratchForOneSplit)) split_k = 1;
  return static_cast<size_t>(piece_count(target, tokens, split_k)) * piece_bytes(problem);
}

int32_t launch_project(const Stages& stages, const Launch& launch, fmhc_diag* diag) {
  FMHC_TRY(check_executor(launch.args.executor, diag));
  const Site site(stages, launch);
  return site.for_blocks(launch.split_k, [&](const Work& work, const Block& block, int32_t slice) {
    site.project_slice(work, block, slice);
  });
}

int32_t launch_finish(const Stages& stages, const Launch& launch, fmhc_diag* diag) {
  FMHC_TRY(check_executor(launch.args.executor, diag));
  const Site site(stages, launch);
  const Rows streams(launch.args.residual);
  return site.for_blocks(1, [&](const Work& work, const Block& block, int32_t) {
    site.add_partials(work, block);
    site.make_coefficients(work, block);
    site.collapse(work, block, streams);
  });
}

int32_t launch_pre(const Stages& stages, const Launch& launch, fmhc_diag* diag) {
  FMHC_TRY(check_executor(launch.args.executor, diag));
  const Site site(stages, launch);
  const Rows streams(launch.args.residual);
  return site.for_blocks(1, [&](const Work& work, const Block& block, int32_t) {
    site.project_whole(work, block, streams);
    site.make_coefficients(work, block);
    site.collapse(work, block, streams);
  });
}

// The coefficient stage knows that a head makes pre alone.
int32_t launch_head(const Stages& stages, const Launch& launch, fmhc_diag* diag) {
  return launch_pre(stages, launch, diag);
}

int32_t launch_seam(const Stages& stages, const Launch& launch, fmhc_diag* diag) {
  FMHC_TRY(check_executor(launch.args.executor, diag));
  const Site site(stages, launch);
  const Rows mixed(launch.args.residual_out);
  return site.for_blocks(1, [&](const Work& work, const Block& block, int32_t) {
#if defined(FMHC_MUTANTS)
    std::vector<float> unrounded(static_cast<size_t>(block.tokens * flat_width(launch.problem)));
    for (int32_t t = 0; t < block.tokens; ++t) {
      mix_unrounded(launch, block.first + t, unrounded.data() + t * flat_width(launch.problem));
    }
#endif
    for (int32_t t = 0; t < block.tokens; ++t) mix_token(stages, launch, block.first + t);
    site.project_whole(work, block, mixed);
#if defined(FMHC_MUTANTS)
    if (mutant(Mutant::kUnroundedStatistic)) site.project_unrounded(work, block, unrounded.data());
#endif
    site.make_coefficients(work, block);
    site.collapse(work, block, mixed);
  });
}

int32_t launch_contract(const Stages& stages, const Launch& launch, fmhc_diag* diag) {
  FMHC_TRY(check_executor(launch.args.executor, diag));
  const Site site(stages, launch);
  const Rows streams(launch.args.residual);
  const int32_t n = launch.problem.streams;
  const float divisor = launch.problem.carried_pre != 0 ? 1.0f : static_cast<float>(n);
  return site.for_blocks(1, [&](const Work& work, const Block& block, int32_t) {
    for (int32_t i = 0; i < n * kBlockTokens; ++i) work.pre[i] = 1.0f;
    site.collapse(work, block, streams, divisor);
  });
}

}  // namespace fmhc::cpu
