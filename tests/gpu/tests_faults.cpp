// Refusals and faults: memory one byte short, broken promises, other devices, errors of the device.
#include <algorithm>
#include <functional>

#include "adversary.h"
#include "tests.h"

namespace fmhc_gpu {
namespace {

using Change = std::function<bool(fmhc_args*)>;  // false: does not apply to this call

struct Fault {
  const char* name;
  Change change;
};

// The call must be INVALID and leave every output as it was: poisoned.
void expect_refusal(Bed* bed, Figure* figure, const Prepared& call, const Fault& fault) {
  Prepared changed = call;
  if (!fault.change(&changed.args)) return;
  fmhc_diag diag{};
  const int32_t code = run(bed->device, changed, &diag);
  bed->device.wait();
  const std::string where = call.kernel + ": " + describe(call.spec) + ", " + fault.name;
  if (code != FMHC_INVALID) {
    figure->fail(where, std::string("returned ") + fmhc_code_name(code) + ", wanted FMHC_INVALID");
  } else if (diag.text[0] == '\0' || diag.code != FMHC_INVALID) {
    figure->fail(where, "no text in the diag");
  } else {
    figure->pass();
  }
}

std::vector<Fault> faults() {
  const auto shift = [](fmhc_in fmhc_args::*field, int64_t bytes) {
    return [field, bytes](fmhc_args* args) {
      fmhc_in& tensor = args->*field;
      if (tensor.data == nullptr) return false;
      tensor.data = static_cast<const char*>(tensor.data) + bytes;
      return true;
    };
  };
  return {
      {"scratch one byte short",
       [](fmhc_args* args) { return args->scratch_bytes > 0 && args->scratch_bytes-- > 0; }},
      {"state one byte short",
       [](fmhc_args* args) { return args->state_bytes > 0 && args->state_bytes-- > 0; }},
      {"scratch not 256-byte aligned",
       [](fmhc_args* args) {
         if (args->scratch_bytes == 0) return false;
         args->scratch = static_cast<char*>(args->scratch) + 16;
         return true;
       }},
      {"scratch NULL",
       [](fmhc_args* args) {
         if (args->scratch_bytes == 0) return false;
         args->scratch = nullptr;
         return true;
       }},
      {"packed one byte short",
       [](fmhc_args* args) {
         if (args->fn_packed.data == nullptr) return false;
         --args->fn_packed.shape[0];
         return true;
       }},
      {"residual 2 bytes off its promise", shift(&fmhc_args::residual, 2)},
      {"fn 2 bytes off an element", shift(&fmhc_args::fn, 2)},
      {"scale 1 byte off an element", shift(&fmhc_args::scale, 1)},
      {"residual NULL",
       [](fmhc_args* args) {
         args->residual.data = nullptr;
         return true;
       }},
      {"more tokens than planned",
       [](fmhc_args* args) {
         args->residual.shape[0] = 10000;
         return true;
       }},
      {"scratch overlapping the layer input",
       [](fmhc_args* args) {
         if (args->scratch_bytes == 0 || args->layer_input.data == nullptr) return false;
         args->layer_input.data = args->scratch;
         return true;
       }},
      {"layer input overlapping the residual",
       [](fmhc_args* args) {
         if (args->layer_input.data == nullptr) return false;
         args->layer_input.data = const_cast<void*>(args->residual.data);
         return true;
       }},
  };
}

}  // namespace

Result test_memory(const Options& options) {
  Bed bed(options);
  Figure figure(options, "memory one byte short");
  const std::vector<Fault> all = faults();
  uint64_t seed = options.seed;
  for (const int32_t op : kAllOps) {
    for (const int64_t tokens : {int64_t{1}, int64_t{64}, int64_t{200}}) {
      CaseSpec spec =
          make_case(op, bed.device.is_cuda() ? 4096 : 128, bed.device.is_cuda() ? tokens : 3, ++seed);
      spec.problem.align_bytes = 16;
      Prepared call;
      if (!bed.ready(&figure, &bed.arena, spec, &call)) continue;
      for (const Fault& fault : all) expect_refusal(&bed, &figure, call, fault);
      // Nothing was written: not by any of the refused calls.
      bed.device.fill_bytes(call.args.state, 0xff, call.args.state_bytes);
      bed.device.fill_bytes(call.packed, 0xff, call.packed_bytes);
      if (bed.arena.checksum() == call.clean) {
        figure.pass();
      } else {
        figure.fail(call.kernel + ": " + describe(spec), "a refused call wrote somewhere");
      }
    }
  }
  return figure.finish();
}

Result test_devices(const Options& options) {
  if (options.device != FMHC_CUDA) return not_on_cpu(options, "wrong current device");
  int count = 0;
  FMHC_CUDA(cudaGetDeviceCount(&count));
  Figure figure(options, "wrong current device");
  if (count < 2) {
    figure.note("not run", "this machine has one device");
    return figure.finish();
  }
  Bed bed(options);
  cudaStream_t foreign = nullptr;
  FMHC_CUDA(cudaSetDevice(1));
  FMHC_CUDA(cudaStreamCreate(&foreign));
  uint64_t seed = options.seed;
  for (const int32_t op : kAllOps) {
    const CaseSpec spec = make_case(op, 4096, 33, ++seed);
    FMHC_CUDA(cudaSetDevice(0));
    Prepared call;
    if (!bed.ready(&figure, &bed.arena, spec, &call)) continue;
    FMHC_CUDA(cudaSetDevice(1));
    const bool launched = bed.launch(&figure, call);
    int current = -1;
    FMHC_CUDA(cudaGetDevice(&current));
    if (current == 1) {
      figure.pass();
    } else {
      figure.fail(describe(spec), "the current device became " + std::to_string(current));
    }
    Prepared stray = call;
    stray.args.stream = foreign;
    fmhc_diag diag{};
    if (run(bed.device, stray, &diag) == FMHC_INVALID) {
      figure.pass();
    } else {
      figure.fail(describe(spec), "a stream of another device was taken");
    }
    FMHC_CUDA(cudaSetDevice(0));
    if (launched) figure.add(spec, call.kernel, bed.judge.compare(call, bounds_for(spec, options.strict)));
  }
  FMHC_CUDA(cudaSetDevice(1));
  FMHC_CUDA(cudaStreamDestroy(foreign));
  return figure.finish();
}

// After an illegal access the context is gone: every later call says so, and nothing else.
Result test_sticky(const Options& options) {
  if (options.device != FMHC_CUDA) return not_on_cpu(options, "sticky device error");
  Bed bed(options);
  Figure figure(options, "sticky device error");
  std::vector<Prepared> calls;
  uint64_t seed = options.seed;
  std::vector<std::unique_ptr<Arena>> arenas;
  for (const int32_t op : kAllOps) {
    arenas.push_back(std::make_unique<Arena>(bed.device, size_t{32} << 20));
    Prepared call;
    if (bed.ready(&figure, arenas.back().get(), make_case(op, 4096, 8, ++seed), &call)) calls.push_back(call);
  }
  launch_fault(bed.device.stream());
  const cudaError_t seen = cudaStreamSynchronize(bed.device.stream());
  figure.note("injected", cudaGetErrorString(seen));
  for (const Prepared& call : calls) {
    fmhc_diag diag{};
    const int32_t code = run(bed.device, call, &diag);
    if (code == FMHC_DEVICE_STICKY) {
      figure.pass();
    } else {
      figure.fail(call.kernel, std::string("after an illegal access: ") + fmhc_code_name(code) + " (" +
                                   diag.text + "), wanted FMHC_DEVICE_STICKY");
    }
    figure.note("text", diag.text);
  }
  fmhc_plan plan{};
  fmhc_diag diag{};
  const fmhc_problem problem = make_problem(FMHC_PRE, 4096, 8);
  const int32_t code = fmhc_plan_make(&problem, &bed.device.target(), nullptr, &plan, &diag);
  if (code == FMHC_DEVICE_STICKY || code == FMHC_OK) {
    figure.pass();
  } else {
    figure.fail("fmhc_plan_make", std::string(fmhc_code_name(code)) + ": " + diag.text);
  }
  const Result result = figure.finish();
  std::fflush(stdout);
  std::_Exit(result);  // releasing memory of a lost context would end in an error
}

// A harmless error that somebody else left behind is reported as theirs, and the next call works.
Result test_pending(const Options& options) {
  if (options.device != FMHC_CUDA) return not_on_cpu(options, "error pending before the call");
  Bed bed(options);
  Figure figure(options, "error pending before the call");
  uint64_t seed = options.seed;
  for (const int32_t op : kAllOps) {
    const CaseSpec spec = make_case(op, 4096, 8, ++seed);
    Prepared call;
    if (!bed.ready(&figure, &bed.arena, spec, &call)) continue;
    void* nothing = nullptr;
    (void)cudaMalloc(&nothing, size_t{1} << 60);  // fails, and leaves its error
    fmhc_diag diag{};
    const int32_t first = run(bed.device, call, &diag);
    figure.count(fmhc_code_name(first));
    if (first == FMHC_DEVICE_BEFORE || first == FMHC_OK) {
      figure.pass();
    } else {
      figure.fail(describe(spec), std::string("with a foreign error pending: ") + fmhc_code_name(first) +
                                      " (" + diag.text + "), wanted FMHC_DEVICE_BEFORE");
    }
    (void)cudaGetLastError();
    if (!bed.launch(&figure, call)) continue;
    bed.device.wait();
    figure.add(spec, call.kernel, bed.judge.compare(call, bounds_for(spec, options.strict)));
  }
  return figure.finish();
}

}  // namespace fmhc_gpu
