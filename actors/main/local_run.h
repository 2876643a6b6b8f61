// `tandem run`: a cluster in this process, one job, followed to its end.
#pragma once

#include "actors/main/cli/client_program.h"
#include "actors/main/cli/command.h"

namespace tandem::cli {

// Exit code.
int run_job(const RunCommand& command, const Console& console, bool verbose);

}  // namespace tandem::cli
