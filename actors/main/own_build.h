// Which build of Tandem this process runs, as it says when it introduces itself (PB-1).
#pragma once

#include "runtime/link/program_build.h"

namespace tandem::app {

// Of this binary and the CUDA module that a process of it would open.
link::ProgramBuild own_build();

}  // namespace tandem::app
