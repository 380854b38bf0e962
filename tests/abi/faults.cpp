#include "faults.h"

namespace abi_test {
namespace {

using Change = std::function<void(fmhc_in&)>;

class Faults {
 public:
  explicit Faults(const Options& options) : call_(options) {}

  std::vector<Fault> all() {
    for (const Slot& each : slots()) {
      if (!call_.used(each)) {
        add_unused(each);
        continue;
      }
      add_missing(each);
      add_shape(each);
      add_dtype(each);
      add_strides(each);
      if (each.output) add_overlaps(each);
    }
    return std::move(faults_);
  }

 private:
  void add(const Slot& slot, const std::string& what, bool strided, const Change& change,
           const std::string& named = "") {
    faults_.push_back({std::string(slot.name) + " " + what, named.empty() ? slot.name : named, strided,
                       [=, &slot](Call& call) {
                         fmhc_in tensor = call.get(slot);
                         change(tensor);
                         call.set(slot, tensor);
                       }});
  }

  void add_unused(const Slot& slot) {
    const fmhc_in given = call_.get(abi_test::slot("residual"));
    add(slot, "given without use", false, [given](fmhc_in& tensor) { tensor = given; });
  }

  void add_missing(const Slot& slot) {
    if (presence(call_.options(), slot) == Presence::kRequired) {
      add(slot, "absent", false, [](fmhc_in& tensor) { tensor = fmhc_in{}; });
    }
    add(slot, "null data", false, [](fmhc_in& tensor) { tensor.data = nullptr; });
    add(slot, "misaligned", false,
        [](fmhc_in& tensor) { tensor.data = static_cast<const char*>(tensor.data) + 1; });
  }

  void add_shape(const Slot& slot) {
    const fmhc_in right = call_.get(slot);
    const std::string name = slot.name;
    for (const int32_t rank : {right.rank - 1, right.rank + 1, -1, 5}) {
      add(
          slot, "rank " + std::to_string(rank), false, [rank](fmhc_in& tensor) { tensor.rank = rank; },
          name + (rank == 0 ? "" : ".rank"));
    }
    for (int axis = 0; axis < right.rank; ++axis) {
      const std::string shape = ".shape[" + std::to_string(axis) + "]";
      // Tokens are counted on the residual and partials on dot_mix_in: another count shows on the next
      // tensor.
      const bool counts = axis == 0 && (name == "residual" || name == "dot_mix_in");
      for (const int64_t step : {-1, 1}) {
        add(
            slot, "extent " + std::to_string(axis) + (step < 0 ? " less" : " more"), false,
            [axis, step](fmhc_in& tensor) { tensor.shape[axis] += step; }, counts ? ".shape[" : name + shape);
      }
      add(
          slot, "extent " + std::to_string(axis) + " negative", false,
          [axis](fmhc_in& tensor) { tensor.shape[axis] = -1; }, name + shape);
      add(
          slot, "extent " + std::to_string(axis) + " huge", false,
          [axis](fmhc_in& tensor) { tensor.shape[axis] = INT64_MAX; }, name + shape);
    }
  }

  void add_dtype(const Slot& slot) {
    const int32_t right = call_.get(slot).dtype;
    for (const int32_t dtype : {-1, 0, 1, 2, 3, 4, 5, 99}) {
      if (dtype == right) continue;
      add(
          slot, "dtype " + std::to_string(dtype), false, [dtype](fmhc_in& tensor) { tensor.dtype = dtype; },
          std::string(slot.name) + ".dtype");
    }
  }

  void add_strides(const Slot& slot) {
    const fmhc_in right = call_.get(slot);
    const std::string name = slot.name;
    for (int axis = 0; axis < right.rank; ++axis) {
      if (right.shape[axis] <= 1) continue;
      const std::string at = std::to_string(axis);
      const std::string stride = name + ".stride[" + at + "]";
      const auto set = [axis](int64_t value) {
        return [axis, value](fmhc_in& tensor) { tensor.stride[axis] = value; };
      };
      const int64_t packed = right.stride[axis];
      const bool last_of_wide = axis == right.rank - 1 && slot.wide;
      add(slot, "stride " + at + " negative", true, set(-packed), stride);
      add(slot, "stride " + at + " overflows", true, set(INT64_MAX / 2), name);
      add(slot, "stride " + at + " not packed", false, set(packed + 8), stride);
      add(slot, "stride " + at + " zero while packed", false, set(0), stride);
      if (last_of_wide) add(slot, "stride " + at + " of 2", true, set(2), stride);
      if (slot.output) add(slot, "stride " + at + " overlaps itself", true, set(0), name);
    }
  }

  // An output shifted half a row into another tensor of the call.
  void add_overlaps(const Slot& output) {
    for (const Slot& other : slots()) {
      if (!call_.used(other) || &other == &output || (other.output && &other < &output)) continue;
      faults_.push_back(
          {std::string(output.name) + " overlaps " + other.name, output.name, false, [&](Call& call) {
             const fmhc_in target = call.get(other);
             const int64_t row = target.stride[0] * element_bytes(target.dtype);
             fmhc_in tensor = call.get(output);
             tensor.data = static_cast<const char*>(target.data) + row / 2 / 8 * 8;
             call.set(output, tensor);
           }});
    }
  }

  Call call_;
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> argument_faults(const Options& options) {
  return Faults(options).all();
}

}  // namespace abi_test
