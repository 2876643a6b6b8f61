// posix_spawn cannot set limits. To lower our own around the call would take descriptors from our
// other threads for that time, so that the child's limit is set behind it.
#include "runtime/node/open_files.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tandem::node {
void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t found = limit.rlim_cur;
  limit.rlim_cur = std::min(limit.rlim_max, kOpenFilesMax);
  if (limit.rlim_cur <= found || setrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  setenv(kOpenFilesVariable, std::to_string(found).c_str(), 1);
}

std::optional<rlimit> open_files_of_programs() {
  const char* const variable = std::getenv(kOpenFilesVariable);
  rlimit limit{};
  if (!variable || getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const std::string_view text(variable);
  rlim_t found = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), found);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  limit.rlim_cur = std::min(found, limit.rlim_max);
  return limit;
}

void restore_open_files(pid_t pid) {
  // An error means that the program has ended, or runs as another user.
  if (const auto limit = open_files_of_programs())
    (void)prlimit(pid, RLIMIT_NOFILE, &*limit, nullptr);
}

}  // namespace tandem::node
