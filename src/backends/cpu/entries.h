// Backend `cpu`: SIMD through Highway, compiled once for each target; threads are the caller's executor.
#pragma once

#include "kernels/entry.h"
