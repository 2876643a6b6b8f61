// `tandem run`: a controller and an agent in this process, one job, followed to its end. The ranks
// are child processes. No process is left afterwards, only the run directory.
#pragma once

#include "actors/cli/client_program.h"
#include "actors/cli/command.h"

namespace tandem::app {

// 0 if the job succeeded, 130 if it was interrupted, else the code of the error, which has been
// printed. Blocks until the job has ended and all processes are gone; SIGINT and SIGTERM are
// blocked from here on (signals.h).
int run_job(const cli::RunCommand& command, const cli::Console& console, bool verbose);

}  // namespace tandem::app
