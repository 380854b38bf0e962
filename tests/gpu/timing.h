// Timing by replays of a captured graph, the machine's own rates measured the same way, and a small foreign
// kernel.
#pragma once

#include <functional>

#include "device.h"

namespace fmhc_gpu {

struct Timing {
  double us = 0;                     // of one call: median of the replays
  double least_us = 0, most_us = 0;  // over the replays
  bool ok = false;
};

// Captures `enqueue`, which makes `calls` calls on the device's stream, and times replays of the graph. On
// the CPU it runs `enqueue` itself. `before` runs ahead of every replay, outside the timed span.
Timing time_calls(Device& device, int replays, int calls, const std::function<bool()>& enqueue,
                  const std::function<void()>& before = {});

double measure_copy_tbps(Device& device);  // bytes read plus bytes written
double measure_clock_mhz(Device& device);  // of the multiprocessors, under load

// A few microseconds of arithmetic in 25 KB of code, so that the next kernel's is not in the instruction cache.
// `sink` is 4 bytes that it never really writes.
void launch_foreign(Device& device, float* sink);
void launch_nothing(Device& device);

// Adds up words of device memory: two equal results mean equal bytes but for a 64-bit accident.
uint64_t checksum_of(Device& device, const void* data, size_t bytes, uint64_t* sum);

}  // namespace fmhc_gpu
