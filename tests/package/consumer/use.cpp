// The same library from C++: the version that is linked is the one whose header was read.
#include <flashmhc/flashmhc.h>

#include <cstdio>
#include <string>

int main() {
  const std::string linked = fmhc_version();
  const std::string header = std::to_string(FMHC_VERSION_MAJOR) + "." + std::to_string(FMHC_VERSION_MINOR) + "." +
                             std::to_string(FMHC_VERSION_PATCH);
  std::printf("linked %s, header %s\n", linked.c_str(), header.c_str());
  return linked == header && fmhc_abi_version() == FMHC_ABI ? 0 : 1;
}
