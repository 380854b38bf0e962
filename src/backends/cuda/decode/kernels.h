// The decode kernels as addresses with their launch sizes, one table a hidden size.
#pragma once

#include <cstdint>

namespace fmhc::cuda::decode {

struct Kernel {
  const void* function;
  int32_t slices, threads, shared_bytes;
};

// A way to spread up to tokens * groups tokens over the grid.
struct Config {
  int32_t tokens;  // of a group
  int32_t groups;
  bool tensor_cores;
};

inline constexpr Config kConfigs[] = {
    {1, 1, false}, {2, 1, false}, {4, 1, false}, {8, 1, false}, {4, 2, false}, {8, 2, false},
    {16, 2, true}, {32, 2, true}, {4, 4, false}, {8, 4, false}, {16, 4, true},
};
inline constexpr int kConfigCount = sizeof kConfigs / sizeof kConfigs[0];

// function is null where a configuration is not built for the hidden size.
Kernel kernel_4096(int config, bool seam, bool norm);
Kernel kernel_5120(int config, bool seam, bool norm);
Kernel kernel_7168(int config, bool seam, bool norm);

}  // namespace fmhc::cuda::decode
