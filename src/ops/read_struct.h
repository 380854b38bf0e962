// Versioned structs of the C ABI: a shorter one comes from an older caller and reads as zero-filled at the
// end.
#pragma once

#include <cstring>

#include "core/status.h"

namespace fmhc {

template <typename T>
int32_t read_struct(const T* given, const char* name, T* out, fmhc_diag* diag) {
  if (given == nullptr) return fail(diag, FMHC_INVALID, "%s is NULL", name);
  const uint32_t size = given->struct_size;
  if (size < sizeof(uint32_t) * 2 || size > sizeof(T)) {
    return fail(diag, FMHC_INVALID, "%s.struct_size is %u; this library reads 8..%zu", name, size, sizeof(T));
  }
  *out = T{};
  std::memcpy(out, given, size);
  out->struct_size = static_cast<uint32_t>(sizeof(T));
  return FMHC_OK;
}

}  // namespace fmhc
