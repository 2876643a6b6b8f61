// The two ends of a pipe, each closed by its owner and by exec.
#pragma once

#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem::node {

struct Pipe {
  OwnedFd read, write;
};

// kOutOfMemory: this machine has no descriptor to give.
Result<Pipe> make_pipe();

}  // namespace tandem::node
