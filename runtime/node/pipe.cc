#include "runtime/node/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tandem::node {

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorCode::kOutOfMemory, "cannot make a pipe: " + errno_text(errno)};
  return Pipe{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

}  // namespace tandem::node
