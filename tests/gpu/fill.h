// Seeded values for memory that is not laid out as a case.
#pragma once

#include "slots.h"

namespace fmhc_gpu {

class Device;
// Fills `bytes` of `data` with values fit for the slot; `flat` is K, `splits` the partials of finish.
void fill_pool(Device& device, SlotId slot, int32_t dtype, void* data, size_t bytes, int64_t flat,
               int64_t splits);

}  // namespace fmhc_gpu
