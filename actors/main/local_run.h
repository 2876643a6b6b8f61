// `tandem run`: a cluster of its own (run_cluster.h), one job, followed to its end. No process is
// left afterwards, only the run directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/verb.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/link/port_range.h"
#include "runtime/node/agent_messages.h"

namespace tandem::app {

// The bounds of a run that is made to look at its figures. It is cancelled at the first one that it
// reaches.
struct RunBounds {
  Duration time{};         // from the start of the command
  std::int64_t steps = 0;  // that are trained
};

// The exit code is 0 if the job succeeded or reached its bounds, 130 if it was interrupted, else
// that of the error. The verb blocks until the job has ended and all processes are gone; SIGINT and
// SIGTERM are blocked from then on (signals.h).
struct RunCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::optional<std::filesystem::path> job;  // nullopt: the job.yaml of the run `resume`
  std::vector<std::string> sets;
  bool dry_run = false;
  std::optional<std::filesystem::path> resume;  // a run directory, or a run's id
  std::optional<std::int64_t> memory_bytes;  // offered by the node that it starts; see NodeCommand
  std::optional<RunBounds> bounds;           // no option sets them
  // With a folder for the cluster, nodes of other hosts may join; JoinableCluster has the rest.
  std::optional<std::filesystem::path> cluster;
  std::optional<std::string> bind, node_name;
  int port = 0;
  link::PortRange ports;
  bool plaintext_gang = false;
  std::optional<std::int64_t> health_port;
  std::int64_t node_grace_s = node::kNodeGraceDefault / std::chrono::seconds(1);
  std::int64_t min_nodes = 1;  // with which the job begins
  // That will come; where they are more than `min_nodes`, it begins with the rollouts that fit.
  std::optional<std::int64_t> nodes;
  std::optional<std::filesystem::path> link;  // becomes a link to the run
  // The run to which `link` leads already goes on instead, as it is.
  bool resume_linked = false;
};

// Said at the first Ctrl-C. `job` is null before it is accepted. A bounded run saves no checkpoint,
// since nobody resumes it.
const char* cancel_notice(const nlohmann::json& job, bool bounded);

}  // namespace tandem::app
