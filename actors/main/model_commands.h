// `tandem generate` and `tandem eval`: a model directory and one engine in this process, without a
// controller, a job or a run directory. Both compute on the CPU. The result is printed to the
// console's output, and the exit code returned; errors have been printed.
#pragma once

#include "actors/cli/client_program.h"
#include "actors/cli/command.h"

namespace tandem::app {

// Completes each prompt once. Sampling is greedy at temperature 0; else its seed is `seed` plus the
// number of the prompt.
int generate(const cli::GenerateCommand& command, const cli::Console& console);
// Evaluates the model on the job's data.val_files as the job's exchange would. Fails where not one
// completion could be scored.
int evaluate(const cli::EvalCommand& command, const cli::Console& console);

}  // namespace tandem::app
