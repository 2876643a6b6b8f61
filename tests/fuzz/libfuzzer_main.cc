// libFuzzer with the target that TANDEM_FUZZ_TARGET names; see tests/fuzz/CMakeLists.txt.
#include <cstdio>
#include <cstdlib>

#include "runtime/base/log.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

const tandem::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("TANDEM_FUZZ_TARGET");
  chosen = tandem::fuzz::find_target(name ? name : "");
  if (chosen) {
    tandem::log::mute();
    return 0;
  }
  std::fprintf(stderr, "set TANDEM_FUZZ_TARGET to one of:");
  for (const auto& target : tandem::fuzz::targets())
    std::fprintf(stderr, " %s", std::string(target.name).c_str());
  std::fprintf(stderr, "\n");
  std::exit(64);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
