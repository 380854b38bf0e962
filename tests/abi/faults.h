// Every way to spoil one argument of a well-formed call, generated from the tables of calls.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calls.h"

namespace abi_test {

struct Fault {
  std::string id;
  std::string named;  // must occur in the text
  bool strided;       // the problem of the call
  std::function<void(Call&)> apply;
};

std::vector<Fault> argument_faults(const Options& options);

}  // namespace abi_test
