#include "runtime/node/cpu_wait.h"

#include <cstdint>
#include <fstream>
#include <system_error>

namespace tandem::node {

Duration cpu_wait(const std::filesystem::path& process) {
  Duration sum{};
  std::error_code gone;  // a thread may end meanwhile
  for (std::filesystem::directory_iterator thread(process / "task", gone), end;
       !gone && thread != end; thread.increment(gone)) {
    // Nanoseconds on a processor, nanoseconds of waiting for one, and the number of turns.
    std::ifstream file(thread->path() / "schedstat");
    std::int64_t ran = 0, waited = 0;
    if (file >> ran >> waited) sum += Duration{waited};
  }
  return sum;
}

}  // namespace tandem::node
