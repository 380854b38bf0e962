// flashmhc_gpu: the GPU tests and the benchmark in one program that needs nothing but a driver.
#include <cstdlib>
#include <cstring>

#include "commands.h"

#if defined(FMHC_MUTANTS)
extern "C" int32_t fmhc_test_set_mutant(int32_t number);
#endif

namespace fmhc_gpu {
namespace {

constexpr const char* kUsage = R"(usage: flashmhc_gpu smoke|test|sanitize|bench|sweep|info [options]
  smoke      every operator, type and norm at a few shapes (20 s)
  test       shapes, bits, graphs, PDL, large and misaligned tensors, faults (400 s)
  sanitize   few launches of every kernel, to run under compute-sanitizer
  bench      microseconds and ratios to the floor (150 s)
  sweep      time at T and T+1 over all thresholds
  info       the card and the build
options
  --device cuda|cpu   where to run; cpu exercises the tests themselves
  --seconds S         time limit of the whole command
  --out DIR           JSON lines go to DIR/tests.jsonl, DIR/bench.jsonl, DIR/sweep.jsonl
  --kernel NAME       a kernel's name or dotted prefix, for every plan
  --part NAME         one part alone
  --seed N --cases N --case I --strict 1      (tests)
  --op LIST --tokens LIST --hidden LIST --class F2,F --mode chained,foreign,alone --pdl 0,1 --residual warm,cold
  --units N --invariant 0|1 --dtype bf16|fp16|fp32 --replays N            (bench, sweep)
)";

[[noreturn]] void misuse(const char* what, const char* value) {
  std::fprintf(stderr, "flashmhc_gpu: %s \"%s\"\n%s", what, value, kUsage);
  std::exit(2);
}

Options read_options(int count, char** words) {
  static constexpr const char* kLists[] = {
    "part",
    "op",
    "tokens",
    "hidden",
    "class",
    "mode",
    "pdl",
    "residual",
    "units",
    "invariant",
    "dtype",
    "replays",
#if defined(FMHC_MUTANTS)
    "mutant",
#endif
  };
  Options options;
  for (int i = 2; i < count; i += 2) {
    if (std::strncmp(words[i], "--", 2) != 0) misuse("unexpected argument", words[i]);
    if (i + 1 >= count) misuse("no value for", words[i]);
    const std::string key = words[i] + 2;
    const std::string value = words[i + 1];
    if (key == "device") {
      if (value != "cuda" && value != "cpu") misuse("unknown device", value.c_str());
      options.device = value == "cuda" ? FMHC_CUDA : FMHC_CPU;
    } else if (key == "out") {
      options.out = value;
    } else if (key == "kernel") {
      options.kernel = value;
    } else if (key == "seconds") {
      options.seconds = std::atof(value.c_str());
    } else if (key == "cases") {
      options.cases = std::atoll(value.c_str());
    } else if (key == "case") {
      options.only = std::atoll(value.c_str());
    } else if (key == "seed") {
      options.seed = static_cast<uint64_t>(std::atoll(value.c_str()));
    } else if (key == "strict") {
      options.strict = value == "1";
    } else {
      bool known = false;
      for (const char* name : kLists) known = known || key == name;
      if (!known) misuse("unknown option", words[i]);
      options.values[key] = value;
    }
  }
#if defined(FMHC_MUTANTS)
  (void)fmhc_test_set_mutant(static_cast<int32_t>(options.numbers("mutant", "0").at(0)));
#endif
  return options;
}

Result print_info(const Options& options) {
  const Device device(options.device);
  const CardInfo card = device.card();
  std::printf("card %s, %d units, L2 %zu MB, memory %zu MB, driver %s, runtime %s, clocks %s\nbuild %s\n",
              card.name.c_str(), card.units, card.l2_bytes >> 20, card.memory_bytes >> 20,
              card.driver.c_str(), card.runtime.c_str(), card.clocks.c_str(), fmhc_build_info());
  for (int32_t index = 0; fmhc_kernel_name(index) != nullptr; ++index) {
    std::printf("kernel %s\n", fmhc_kernel_name(index));
  }
  return kPassed;
}

struct Command {
  const char* name;
  Result (*run)(const Options&);
};

constexpr Command kCommands[] = {
    {"smoke", run_smoke}, {"test", run_tests},  {"sanitize", run_sanitize},
    {"bench", run_bench}, {"sweep", run_sweep}, {"info", print_info},
};

}  // namespace

Result run_command(const Options& options, const char* name, const std::vector<Part>& parts, double seconds) {
  const auto wanted = options.values.find("part");
  if (wanted == options.values.end()) {
    return run_parts(options, name, parts, options.seconds > 0 ? options.seconds : seconds);
  }
  for (const Part& part : parts) {
    if (wanted->second != part.name) continue;
    Options own = options;
    if (own.seconds <= 0) own.seconds = part.seconds;
    arm_timeout(own.seconds + 2);
    return part.run(own);
  }
  misuse("unknown part", wanted->second.c_str());
}

}  // namespace fmhc_gpu

int main(int count, char** words) {
  using namespace fmhc_gpu;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (count < 2) misuse("missing", "subcommand");
  for (const Command& command : kCommands) {
    if (std::strcmp(words[1], command.name) != 0) continue;
    const Options options = read_options(count, words);
    static const std::string fatal_file = options.out + "/tests.jsonl";
    if (!options.out.empty()) set_fatal_file(fatal_file.c_str());
    return command.run(options);
  }
  misuse("unknown subcommand", words[1]);
}
