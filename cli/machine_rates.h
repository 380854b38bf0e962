// What this machine can do at best, measured beside the kernels: the floor that their times are compared
// with.
#pragma once

#include <cstdint>
#include <string>

#include "flashmhc/flashmhc.h"

namespace fmhc::cli {

struct MachineRates {
  double copy_bytes_per_us;  // read and written, by a copy far larger than the caches
  double fma_flops_per_us;   // fp32 fused multiply-adds on registers, two operations each, all threads
};

MachineRates measure_rates(const fmhc_executor& executor, bool quick);

std::string cpu_name();
int64_t last_level_cache_bytes();

}  // namespace fmhc::cli
