#include "calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>

#include "core/dtype.h"

namespace abi_test {
namespace {

#define IN(field, ...) \
  { #field, offsetof(fmhc_args, field), false, __VA_ARGS__ }
#define OUT(field, ...) \
  { #field, offsetof(fmhc_args, field), true, __VA_ARGS__ }

constexpr Slot kSlots[] = {
    IN(residual, Type::kStorage, true, "TnH"),
    IN(sublayer_output, Type::kStorage, true, "TH"),
    IN(post_in, Type::kCoefficient, false, "Tn"),
    IN(comb_in, Type::kCoefficient, false, "Tnn"),
    IN(pre_in, Type::kCoefficient, false, "Tn"),
    IN(fn, Type::kFp32, true, "NK"),
    IN(fn_packed, Type::kReserved, false, "1"),
    IN(scale, Type::kFp32, false, "3"),
    IN(base, Type::kFp32, false, "N"),
    IN(norm_weight, Type::kNormWeight, true, "H"),
    IN(dot_mix_in, Type::kCoefficient, true, "STN"),
    IN(sqrsum_in, Type::kCoefficient, true, "ST"),
    OUT(residual_out, Type::kStorage, true, "TnH"),
    OUT(layer_input, Type::kStorage, true, "TH"),
    OUT(post_mix, Type::kCoefficient, false, "Tn"),
    OUT(comb_mix, Type::kCoefficient, false, "Tnn"),
    OUT(pre_mix, Type::kCoefficient, false, "Tn"),
    OUT(dot_mix, Type::kCoefficient, true, "STN"),
    OUT(sqrsum, Type::kCoefficient, true, "ST"),
    OUT(quant, Type::kReserved, false, "1"),
    OUT(quant_scale, Type::kReserved, false, "1"),
};

#undef IN
#undef OUT

constexpr Op kOps[] = {
    {FMHC_EXPAND, "expand", " residual residual_out ", "", false, false, false, false},
    {FMHC_PROJECT, "project", " residual fn dot_mix sqrsum ", "", false, false, true, false},
    {FMHC_FINISH, "finish", " residual scale base dot_mix_in sqrsum_in layer_input post_mix comb_mix ",
     " pre_mix ", true, true, false, false},
    {FMHC_PRE, "pre", " residual fn scale base layer_input post_mix comb_mix ", " pre_mix ", true, true, true,
     false},
    {FMHC_POST, "post", " residual sublayer_output post_in comb_in residual_out ", "", false, false, false,
     true},
    {FMHC_SEAM, "seam",
     " residual sublayer_output post_in comb_in fn scale base residual_out layer_input post_mix comb_mix ",
     " pre_mix ", true, true, true, true},
    {FMHC_HEAD, "head", " residual fn scale base layer_input ", " pre_mix ", true, false, true, false},
    {FMHC_CONTRACT, "contract", " residual layer_input ", "", true, true, false, false},
};

constexpr unsigned char kGuard = 0xa5;
constexpr unsigned char kUnwritten = 0xff;
constexpr size_t kZone = 256;

// `names` has a blank on both sides of every name.
bool lists(std::string_view names, std::string_view name) {
  for (size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    if (names[at - 1] == ' ' && names[at + name.size()] == ' ') return true;
  }
  return false;
}

int64_t extent(const Options& options, char axis) {
  const int64_t n = options.streams;
  switch (axis) {
    case 'T':
      return options.tokens;
    case 'n':
      return n;
    case 'H':
      return options.hidden;
    case 'K':
      return n * options.hidden;
    case 'N':
      return options.op == FMHC_HEAD ? n : n * (n + 2);
    case 'S':
      return options.splits;
    default:
      return axis - '0';
  }
}

int32_t dtype_of(const Options& options, Type type) {
  switch (type) {
    case Type::kStorage:
      return options.storage;
    case Type::kCoefficient:
      return options.storage == FMHC_FP64 ? FMHC_FP64 : FMHC_FP32;
    case Type::kNormWeight:
      return options.norm_weight;
    default:
      return FMHC_FP32;
  }
}

fmhc_in packed_tensor(const Options& options, const Slot& slot) {
  std::string_view shape = slot.shape;
  if (options.op == FMHC_EXPAND && slot.name == std::string_view("residual")) shape = "TH";
  if (options.op == FMHC_HEAD && slot.name == std::string_view("scale")) shape = "1";
  fmhc_in tensor{nullptr, {}, {}, static_cast<int32_t>(shape.size()), dtype_of(options, slot.type)};
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    tensor.shape[axis] = extent(options, shape[axis]);
    tensor.stride[axis] = stride;
    stride *= std::max<int64_t>(tensor.shape[axis], 1);
  }
  return tensor;
}

// Calls body(offset) for every element in row-major order.
template <typename Body>
void for_each_element(const fmhc_in& tensor, Body&& body) {
  int64_t count = 1;
  for (int axis = 0; axis < tensor.rank; ++axis) count *= tensor.shape[axis];
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t offset = 0;
    for (int axis = tensor.rank; axis-- > 0; rest /= tensor.shape[axis]) {
      offset += rest % tensor.shape[axis] * tensor.stride[axis];
    }
    body(offset);
  }
}

size_t span_bytes(const fmhc_in& tensor) {
  int64_t last = 0;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.shape[axis] == 0) return 0;
    last += (tensor.shape[axis] - 1) * tensor.stride[axis];
  }
  return static_cast<size_t>((last + 1) * element_bytes(tensor.dtype));
}

void write_element(unsigned char* place, int32_t dtype, double value) {
  const auto put = [place](auto stored) { std::memcpy(place, &stored, sizeof stored); };
  if (dtype == FMHC_BF16) put(fmhc::narrow<fmhc::Bf16>(value));
  if (dtype == FMHC_FP16) put(fmhc::narrow<fmhc::Fp16>(value));
  if (dtype == FMHC_FP32) put(static_cast<float>(value));
  if (dtype == FMHC_FP64) put(value);
}

// Uniform in [0, 1), a function of the slot and the element's number.
double noise(size_t slot, uint64_t element) {
  uint64_t x = (element + 1) * 0x9e3779b97f4a7c15u + slot * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

void PrintTo(const Op& op, std::ostream* out) {
  *out << op.name;
}

std::span<const Slot> slots() {
  return kSlots;
}
std::span<const Op> ops() {
  return kOps;
}

const Slot& slot(std::string_view name) {
  return *std::find_if(std::begin(kSlots), std::end(kSlots), [&](const Slot& s) { return s.name == name; });
}

const Op& op_of(int32_t op) {
  return kOps[op - 1];
}

std::string Options::describe() const {
  return std::string(op_of(op).name) + " dtype " + std::to_string(storage) + " norm " + std::to_string(norm) +
         (carried != 0 ? " carried" : "") + " T " + std::to_string(tokens) + " H " + std::to_string(hidden) +
         " kernel " + (kernel == nullptr ? "any" : kernel);
}

Presence presence(const Options& options, const Slot& slot) {
  const Op& op = op_of(options.op);
  const std::string_view name = slot.name;
  if (name == "norm_weight") {
    return options.norm != FMHC_NORM_NONE ? Presence::kRequired : Presence::kUnused;
  }
  if (name == "pre_in") return options.carried != 0 ? Presence::kRequired : Presence::kUnused;
  if (lists(op.required, name)) return Presence::kRequired;
  if (!lists(op.optional, name)) return Presence::kUnused;
  return options.carried != 0 ? Presence::kRequired : Presence::kMay;
}

fmhc_problem make_problem(const Options& options) {
  fmhc_problem problem{};
  problem.struct_size = sizeof problem;
  problem.op = options.op;
  problem.streams = options.streams;
  problem.residual_dtype = options.storage;
  problem.projection = FMHC_CLASS_F;
  problem.norm = options.norm;
  problem.norm_weight_dtype = options.norm != FMHC_NORM_NONE ? options.norm_weight : 0;
  problem.carried_pre = options.carried;
  problem.strided = options.strided;
  problem.align_bytes = options.align_bytes;
  problem.hidden = options.hidden;
  problem.max_tokens = options.max_tokens;
  problem.consts = {1e-6f, 1e-6f, 1e-6f, 2.0f, 1e-5f, options.iters};
  return problem;
}

fmhc_target host_target() {
  fmhc_target target{};
  fmhc_target_query(FMHC_CPU, 0, &target, nullptr);
  return target;
}

Memory::Memory(size_t bytes, unsigned char fill) : raw_(bytes + 3 * kZone, kGuard), size_(bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(raw_.data());
  data_ = raw_.data() + ((begin + 2 * kZone - 1) / kZone * kZone - begin);
  std::memset(data_, fill, bytes);
}

bool Memory::guards_intact() const {
  const auto intact = [](const unsigned char* from, const unsigned char* to) {
    return std::all_of(from, to, [](unsigned char byte) { return byte == kGuard; });
  };
  return data_ == nullptr || (intact(raw_.data(), data_) && intact(data_ + size_, raw_.data() + raw_.size()));
}

Call::Call(const Options& options)
    : problem(make_problem(options)), target(host_target()), options_(options), memory_(slots().size()) {
  fmhc_hints hints{};
  hints.struct_size = sizeof hints;
  hints.kernel = options.kernel;
  hints.split_k = options.op == FMHC_PROJECT ? options.splits : 0;
  plan_code_ = fmhc_plan_make(&problem, &target, &hints, &plan, &diag);
  args.struct_size = sizeof args;
  for (const Slot& each : slots()) {
    const Presence present = presence(options, each);
    if (present == Presence::kUnused || (present == Presence::kMay && !options.optional_outputs)) continue;
    const fmhc_in tensor = packed_tensor(options, each);
    set(each, tensor);
    std::array<int64_t, 4> strides{};
    std::copy_n(tensor.stride, 4, strides.begin());
    place(each, strides, 0);
  }
  scratch = Memory(fmhc_plan_scratch(&plan), kGuard);
  state = Memory(fmhc_plan_state(&plan), kGuard);
  args.scratch_bytes = scratch.size();
  args.state_bytes = state.size();
  args.scratch = scratch.size() != 0 ? scratch.data() : nullptr;
  args.state = state.size() != 0 ? state.data() : nullptr;
  if (plan_code_ == FMHC_OK) plan_code_ = fmhc_state_init(&plan, args.state, state.size(), nullptr, &diag);
}

size_t Call::index(const Slot& slot) const {
  return static_cast<size_t>(&slot - kSlots);
}

fmhc_in Call::get(const Slot& slot) const {
  fmhc_in tensor;
  std::memcpy(&tensor, reinterpret_cast<const char*>(&args) + slot.offset, sizeof tensor);
  return tensor;
}

void Call::set(const Slot& slot, const fmhc_in& tensor) {
  std::memcpy(reinterpret_cast<char*>(&args) + slot.offset, &tensor, sizeof tensor);
}

void Call::place(const Slot& slot, const std::array<int64_t, 4>& strides, int64_t skip) {
  fmhc_in tensor = get(slot);
  std::copy(strides.begin(), strides.end(), tensor.stride);
  const auto skipped = static_cast<size_t>(skip * element_bytes(tensor.dtype));
  Memory& memory = memory_[index(slot)];
  memory = Memory(skipped + span_bytes(tensor), kUnwritten);
  tensor.data = memory.data() + skipped;
  set(slot, tensor);
  if (!slot.output) fill(slot, tensor);
}

void Call::fill(const Slot& slot, const fmhc_in& tensor) const {
  const std::string_view name = slot.name;
  auto* bytes = static_cast<unsigned char*>(const_cast<void*>(tensor.data));
  uint64_t element = 0;
  for_each_element(tensor, [&](int64_t offset) {
    double value = 4 * noise(index(slot), element++) - 2;
    if (name == "comb_in" || name == "sqrsum_in") value = std::fabs(value);
    if (name == "fn") value /= std::sqrt(static_cast<double>(tensor.shape[1]));
    write_element(bytes + offset * element_bytes(tensor.dtype), tensor.dtype, value);
  });
}

std::vector<unsigned char> Call::read(const Slot& slot) const {
  const fmhc_in tensor = get(slot);
  const auto bytes = element_bytes(tensor.dtype);
  std::vector<unsigned char> out;
  for_each_element(tensor, [&](int64_t offset) {
    const auto* element = static_cast<const unsigned char*>(tensor.data) + offset * bytes;
    out.insert(out.end(), element, element + bytes);
  });
  return out;
}

std::vector<unsigned char> Call::read_outputs() const {
  std::vector<unsigned char> all;
  for (const Slot& each : slots()) {
    if (!each.output || get(each).rank == 0) continue;
    const std::vector<unsigned char> one = read(each);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

std::vector<unsigned char> Call::all_bytes() const {
  std::vector<unsigned char> all;
  for (const Memory& memory : memory_) all.insert(all.end(), memory.raw().begin(), memory.raw().end());
  return all;
}

bool Call::surroundings_intact() const {
  bool intact = scratch.guards_intact() && state.guards_intact();
  for (const Slot& each : slots()) {
    const Memory& memory = memory_[index(each)];
    intact &= memory.guards_intact();
    const fmhc_in tensor = get(each);
    const auto address = reinterpret_cast<uintptr_t>(tensor.data);
    const auto begin = reinterpret_cast<uintptr_t>(memory.data());
    if (!each.output || memory.data() == nullptr || address < begin || address > begin + memory.size())
      continue;
    if (read(each).size() == memory.size()) continue;  // no gaps
    std::vector<bool> element(memory.size(), false);
    const auto bytes = static_cast<size_t>(element_bytes(tensor.dtype));
    for_each_element(tensor, [&](int64_t offset) {
      const size_t at = address - begin + static_cast<size_t>(offset) * bytes;
      for (size_t byte = 0; byte < bytes; ++byte) element.at(at + byte) = true;
    });
    for (size_t byte = 0; byte < memory.size(); ++byte) {
      intact &= element[byte] || memory.data()[byte] == kUnwritten;
    }
  }
  return intact;
}

std::vector<std::string> kernels_for(Options options) {
  std::vector<std::string> names;
  const fmhc_problem problem = make_problem(options);
  const fmhc_target target = host_target();
  for (int32_t index = 0; fmhc_kernel_name(index) != nullptr; ++index) {
    fmhc_hints hints{};
    hints.struct_size = sizeof hints;
    hints.kernel = fmhc_kernel_name(index);
    hints.split_k = options.op == FMHC_PROJECT ? options.splits : 0;
    if (fmhc_supported(&problem, &target, &hints, nullptr) == FMHC_OK) names.emplace_back(hints.kernel);
  }
  return names;
}

std::vector<Options> variants_of(const Op& op) {
  std::vector<Options> variants(1);
  variants[0].op = op.op;
  if (op.collapses) {
    variants.push_back(variants[0]);
    variants.back().norm = FMHC_NORM_ENGINE;
    variants.back().norm_weight = FMHC_FP32;
    variants.back().carried = op.carries ? 1 : 0;
  }
  return variants;
}

int32_t element_bytes(int32_t dtype) {
  return dtype == FMHC_FP64 ? 8 : dtype == FMHC_FP32 ? 4 : 2;
}

}  // namespace abi_test
