// `tandem controller`, `tandem node`, `tandem up`, `tandem down`: a cluster that outlives a
// command. `up` starts the first two in the background and waits until a job could be placed;
// `down` ends them. All of them belong to one state folder, TANDEM_HOME, whose lock tells whether a
// controller runs.
//
// Each function returns the exit code of its command and has printed the error, if there is one.
#pragma once

#include <optional>
#include <string>

#include "actors/cli/client_program.h"
#include "actors/cli/command.h"

namespace tandem::app {

// Both run in the foreground until SIGINT or SIGTERM, or, for a node, until its controller is lost
// or has refused it.
int run_controller(const cli::ControllerCommand& command, const cli::Console& console,
                   bool verbose);
int run_node(const cli::NodeCommand& command, const cli::Console& console, bool verbose);
// Starts the parts that do not run yet; a cluster that is up already is no error. `down` returns
// when the controller and all nodes of this host have ended, and without a cluster at once with 0.
// It prints the commands that resume the jobs which it cancelled.
int cluster_up(const cli::UpCommand& command, const cli::Console& console);
int cluster_down(const cli::Console& console);

}  // namespace tandem::app
