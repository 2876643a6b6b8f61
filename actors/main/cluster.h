// `tandem controller`, `tandem node`, `tandem up`, `tandem down`: a cluster that outlives a
// command. `up` starts the first two in the background and waits until a job could be placed;
// `down` ends them. All of them belong to one state folder, TANDEM_HOME, whose lock tells whether a
// controller runs.
//
// Each is a verb (actors/cli/verb.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/cli/console.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"

namespace tandem::app {

// The first two run in the foreground until SIGINT or SIGTERM, or, for a node, until its controller
// is lost or has refused it.
struct ControllerCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  cli::ListenOptions listen;
};

struct NodeCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::optional<std::string> controller;  // "host:port"; default: from controller.json
  std::optional<std::string> name;        // default: the host's name
  // The address at which ranks listen for other hosts, and the address by which those reach it;
  // default: the address from which this machine reaches `controller`.
  std::optional<std::string> bind, advertise;
  std::optional<double> cpus;                // default: those that this process may use
  std::optional<std::int64_t> memory_bytes;  // at most; default: all that the machine has left
};

// Starts the parts that do not run yet; a cluster that is up already is no error.
struct UpCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  cli::ListenOptions listen;
  std::optional<std::int64_t> memory_bytes;  // see NodeCommand
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
