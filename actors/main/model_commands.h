// `tandem generate` and `tandem eval`: a model directory and an engine, without a cluster.
#pragma once

#include "actors/main/cli/client_program.h"
#include "actors/main/cli/command.h"

namespace tandem::cli {

int generate(const GenerateCommand& command, const Console& console);
int evaluate(const EvalCommand& command, const Console& console);

}  // namespace tandem::cli
