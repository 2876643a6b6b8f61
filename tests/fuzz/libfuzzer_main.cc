// libFuzzer with the target that TANDEM_FUZZ_TARGET names; see tests/fuzz/CMakeLists.txt.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "runtime/base/log.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

const tandem::fuzz::Target* chosen = nullptr;

// libFuzzer looks for slow inputs by an alarm every few seconds, which would end a system call that
// waits just then, such as connect(), with EINTR. Calls go on after it instead; poll(), which no
// flag restarts, is called again by those who wait in it.
void let_alarms_restart_calls() {
  struct sigaction alarm {};
  if (sigaction(SIGALRM, nullptr, &alarm) != 0) std::abort();
  alarm.sa_flags |= SA_RESTART;
  if (sigaction(SIGALRM, &alarm, nullptr) != 0) std::abort();
}

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
  // At the first input: libFuzzer sets its handler after LLVMFuzzerInitialize().
  static const bool restarting = (let_alarms_restart_calls(), true);
  (void)restarting;
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
