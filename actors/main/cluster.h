// `tandem controller`, `tandem node`, `tandem up`, `tandem down`: a cluster that outlives a
// command.
#pragma once

#include <optional>
#include <string>

#include "actors/main/cli/client_program.h"
#include "actors/main/cli/command.h"

namespace tandem::cli {

int run_controller(const ControllerCommand& command, const Console& console, bool verbose);
int run_node(const NodeCommand& command, const Console& console, bool verbose);
int cluster_up(const UpCommand& command, const Console& console);
int cluster_down(const Console& console);

}  // namespace tandem::cli
