// What io answers, for a subcommand: the value, or the fault as a Failure of a bad file.
#pragma once

#include <utility>

#include "cli/console.h"
#include "io/result.h"

namespace fmhc::cli {

template <class T>
T take(io::Result<T> result) {
  if (!result) throw Failure(kExitBad, result.fault().message());
  return std::move(*result);
}

inline Json fault_json(const io::Fault& fault) {
  return {{"code", io::errc_name(fault.code)},
          {"file", fault.file},
          {"where", fault.where},
          {"given", fault.given},
          {"wanted", fault.wanted},
          {"message", fault.message()}};
}

}  // namespace fmhc::cli
