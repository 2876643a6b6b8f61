// How many files a process may have open (RLIMIT_NOFILE). Tandem's processes need more than the
// soft limit that most systems give, 1024. A user's program gets back the limit that was there
// before: one that waits by select() breaks on descriptors above 1023.
//
// OF-1  A user's program starts with the soft limit that Tandem found. One that posix_spawn starts
//       has the raised limit for the first moment.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>

namespace tandem::node {

// The soft limit before it was raised. A user's program finds it empty: what starts Tandem below it
// may have another limit.
inline constexpr const char* kOpenFilesVariable = "TANDEM_OPEN_FILES";
inline constexpr rlim_t kOpenFilesMax = 1 << 20;  // more descriptors than any process here opens

// Raises the soft limit of this process to its hard one, at most to kOpenFilesMax. Leaves the limit
// that was there in the environment, since Tandem's own children inherit the raised one. Called
// before another thread runs.
void raise_open_files();

// The limit for a user's program; none where this process has not raised its own, and none of its
// ancestors has.
std::optional<rlimit> open_files_of_programs();

// Gives the user's program `pid`, a child that runs already, that limit.
void restore_open_files(pid_t pid);

}  // namespace tandem::node
