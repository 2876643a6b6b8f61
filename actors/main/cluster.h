// `tandem controller`, `tandem up`, `tandem down`: a cluster that outlives a command. `up` starts a
// controller and a node (node_command.h) in the background and waits until a job could be placed;
// `down` ends them. All of them belong to one state folder, TANDEM_HOME, whose lock tells whether a
// controller runs. A controller takes up the jobs of one before it that did not end by `down`.
//
// Each is a verb (actors/cli/verb.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "actors/cli/console.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"
#include "actors/main/controller_process.h"
#include "actors/main/up_hosts.h"

namespace tandem::app {

// Runs in the foreground until SIGINT or SIGTERM; that of a `tandem run --cluster` until SIGINT.
struct ControllerCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  cli::ListenOptions listen;
  std::optional<std::filesystem::path> of_run;  // the state folder of a `tandem run`'s cluster
};

// What `tandem controller` does. `expected`: see ControllerOptions. Call it before the process's
// first thread. Returns the exit code.
int run_controller(const ControllerCommand& command, std::optional<ExpectedJob> expected,
                   const cli::Console& console, bool verbose);

// Starts the parts that do not run yet; a cluster that is up already is no error.
struct UpCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  cli::ListenOptions listen;
  std::optional<std::int64_t> memory_bytes;  // see NodeCommand
  UpHosts hosts;
};

struct DownCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);
};

// Carries out `down`. Returns the exit code once the controller and all nodes of this host have
// ended; without a cluster 0 at once. Prints the commands that resume the jobs which it cancelled.
int cluster_down(const cli::Console& console);

}  // namespace tandem::app
