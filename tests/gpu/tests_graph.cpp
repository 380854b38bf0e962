// Graphs and programmatic launches: replays under churn, empty calls in capture, predecessors that write
// late.
#include <algorithm>

#include "adversary.h"
#include "tests.h"

namespace fmhc_gpu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A captured call with memory of its own.
struct Captured {
  Captured(Device& device_in, size_t bytes) : device(device_in), arena(device_in, bytes) {}
  ~Captured() {
    if (exec != nullptr) (void)cudaGraphExecDestroy(exec);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  bool capture(std::string* error) {
    fmhc_diag diag{};
    FMHC_CUDA(cudaStreamBeginCapture(device.stream(), cudaStreamCaptureModeGlobal));
    const int32_t code = run(device, call, &diag);
    const cudaError_t ended = cudaStreamEndCapture(device.stream(), &graph);
    if (code != FMHC_OK || ended != cudaSuccess) {
      *error = code != FMHC_OK ? diag.text : cudaGetErrorString(ended);
      (void)cudaGetLastError();
      return false;
    }
    FMHC_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    FMHC_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    return true;
  }

  Device& device;
  Arena arena;
  Prepared call;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  size_t nodes = 0;
  uint64_t want = 0;
};

uint64_t sum_now(Device& device, const Prepared& call) {
  SumLog log(device, 1);
  sum_outputs(device, call, log.next());
  return log.read().front();
}

// Makes the graphs: some operators at some token counts.
std::vector<std::unique_ptr<Captured>> capture_all(Bed* bed, Figure* figure) {
  std::vector<std::unique_ptr<Captured>> graphs;
  uint64_t seed = bed->options.seed;
  for (const int32_t op : {FMHC_PRE, FMHC_SEAM, FMHC_POST, FMHC_HEAD, FMHC_PROJECT, FMHC_FINISH}) {
    for (const int64_t tokens : {int64_t{1}, int64_t{8}, int64_t{64}, int64_t{160}}) {
      for (const int32_t units : bed->unit_choices()) {
        auto one = std::make_unique<Captured>(bed->device, 64 * kMiB);
        CaseSpec spec = make_case(op, tokens == 8 ? 7168 : 4096, tokens, ++seed);
        spec.problem.max_tokens = 512;
        spec.problem.pdl = seed % 4 < 2;
        spec.problem.coresident_units = units;
        if (!bed->ready(figure, &one->arena, spec, &one->call) || !bed->launch(figure, one->call)) continue;
        one->want = sum_now(bed->device, one->call);
        std::string error;
        if (!one->capture(&error)) {
          figure->fail(one->call.kernel + ": " + describe(spec), "in capture: " + error);
          continue;
        }
        graphs.push_back(std::move(one));
      }
    }
  }
  return graphs;
}

}  // namespace

Result test_graph(const Options& options) {
  if (options.device != FMHC_CUDA) return not_on_cpu(options, "graph replays under churn");
  Bed bed(options, 256 * kMiB);
  Figure figure(options, "graph replays under churn");
  std::vector<std::unique_ptr<Captured>> graphs = capture_all(&bed, &figure);
  constexpr int64_t kWanted = 100000;
  constexpr int64_t kLeast = 10000;
  int64_t replays = 0;
  int64_t eager = 0;
  for (int64_t round = 0; !graphs.empty() && replays < kWanted && !bed.late() && figure.failures() < 10;
       ++round) {
    constexpr int64_t kReplaysARound = 200;
    SumLog sums(bed.device, kReplaysARound);
    std::vector<size_t> order;
    for (int64_t i = 0; i < kReplaysARound; ++i, ++replays) {
      const size_t which = static_cast<size_t>(mix64(static_cast<uint64_t>(replays))) % graphs.size();
      Captured& one = *graphs[which];
      poison_outputs(bed.device, one.call);
      FMHC_CUDA(cudaGraphLaunch(one.exec, bed.device.stream()));
      sum_outputs(bed.device, one.call, sums.next());
      order.push_back(which);
    }
    // Other shapes eagerly, on the same stream, and memory that comes and goes.
    for (int i = 0; i < 12; ++i, ++eager) {
      CaseSpec spec = random_case(options.seed, round * 12 + i, true, 0);
      Prepared call;
      if (bed.ready(&figure, &bed.arena, spec, &call)) (void)bed.launch(&figure, call);
    }
    void* churn = bed.device.allocate(static_cast<size_t>(1 + round % 7) * 8 * kMiB);
    bed.device.fill_bytes(churn, 0xff, 8 * kMiB);
    const std::vector<uint64_t> read = sums.read();
    bed.device.release(churn);
    for (size_t i = 0; i < read.size(); ++i) {
      if (read[i] == graphs[order[i]]->want) {
        figure.pass();
      } else {
        figure.fail(graphs[order[i]]->call.kernel + ": " + describe(graphs[order[i]]->call.spec),
                    "a replay differs from the eager call");
      }
    }
  }
  figure.note("replays", std::to_string(replays) + " of " + std::to_string(graphs.size()) + " graphs, " +
                             std::to_string(eager) + " eager calls between");
  if (replays < kLeast) figure.fail("time", "not all replays ran");
  return figure.finish();
}

Result test_empty(const Options& options) {
  Bed bed(options);
  Figure figure(options, "zero tokens");
  for (const int32_t op : kAllOps) {
    for (const int32_t dtype : {FMHC_BF16, FMHC_FP16, FMHC_FP32}) {
      CaseSpec spec = make_case(op, 4096, 0, options.seed);
      spec.problem.residual_dtype = dtype;
      spec.problem.max_tokens = 128;
      if (!bed.device.is_cuda()) {
        bed.check(&figure, spec);
        continue;
      }
      Captured one(bed.device, 64 * kMiB);
      if (!bed.ready(&figure, &one.arena, spec, &one.call)) continue;
      std::string error;
      if (!one.capture(&error)) {
        figure.fail(describe(spec), "in capture: " + error);
      } else if (one.nodes != 0) {
        figure.fail(describe(spec), std::to_string(one.nodes) + " nodes captured; wanted none");
      } else {
        figure.pass();
      }
      if (bed.launch(&figure, one.call) && cudaGetLastError() == cudaSuccess) figure.pass();
    }
  }
  return figure.finish();
}

namespace {

constexpr uint64_t kSleepNs = 100000;
constexpr int64_t kPairs = 40;

// Late writer, call, early reader; `staging` holds copies of the inputs and takes the outputs.
void pdl_case(Bed* bed, Arena* staging, Figure* figure, const CaseSpec& spec) {
  Prepared call;
  if (!bed->ready(figure, &bed->arena, spec, &call) || !bed->launch(figure, call)) return;
  const uint64_t want = sum_now(bed->device, call);
  staging->reset();
  CopyList inputs;
  CopyList outputs;
  CopyList poison;
  Prepared copied = call;
  for (int index = 0; index < kSlots; ++index) {
    const View& view = call.view[index];
    const bool weight = index == kFn || index == kScale || index == kBase || index == kNormWeight;
    if (view.data == nullptr || weight) continue;
    const int64_t bytes = view.count() * element_bytes(view.dtype);
    char* copy = staging->take(static_cast<size_t>(bytes));
    if (slots()[static_cast<size_t>(index)].in != nullptr) {
      bed->device.copy_within(copy, view.data, static_cast<size_t>(bytes));
      inputs.add(view.data, copy, bytes);
      poison.add(view.data, nullptr, bytes);
    } else {
      outputs.add(copy, view.data, bytes);
      copied.view[index].data = copy;
    }
  }
  SumLog sums(bed->device, kPairs);
  for (int64_t pair = 0; pair < kPairs; ++pair) {
    poison_outputs(bed->device, call);
    poison_outputs(bed->device, copied);
    launch_late_writer(bed->device.stream(), inputs, pair % 4 == 3 ? 0 : kSleepNs);
    if (!bed->launch(figure, call)) return;
    launch_early_reader(bed->device.stream(), outputs, poison);
    sum_outputs(bed->device, copied, sums.next());
  }
  const int64_t unequal = sums.count_unequal(want);
  if (unequal == 0) {
    figure->pass(2 * kPairs);
  } else {
    figure->fail(call.kernel + ": " + describe(spec), std::to_string(unequal) + " of " +
                                                          std::to_string(kPairs) +
                                                          " chains gave other results than a call alone");
  }
}

}  // namespace

// A predecessor that releases the call at once and writes its inputs 100 us later; a successor that starts
// early, reads the outputs and destroys the inputs. What the call reads too early is NaN.
Result test_pdl(const Options& options) {
  if (options.device != FMHC_CUDA) return not_on_cpu(options, "programmatic launch pairs");
  Bed bed(options, 512 * kMiB);
  Arena staging(bed.device, 512 * kMiB);
  Figure figure(options, "programmatic launch pairs");
  uint64_t seed = options.seed;
  for (const int32_t op : kAllOps) {
    for (const int64_t tokens : {int64_t{1}, int64_t{16}, int64_t{64}, int64_t{300}, int64_t{2000}}) {
      for (const int32_t units : bed.unit_choices()) {
        if (bed.late()) {
          figure.fail("time", "not all pairs ran");
          return figure.finish();
        }
        CaseSpec spec = make_case(op, tokens == 16 ? 7168 : 4096, tokens, ++seed);
        spec.problem.pdl = 1;
        spec.problem.coresident_units = units;
        pdl_case(&bed, &staging, &figure, spec);
      }
    }
  }
  return figure.finish();
}

}  // namespace fmhc_gpu
