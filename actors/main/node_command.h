// `tandem node`: the agent of this machine. It runs until SIGINT or SIGTERM (one that has joined
// the cluster of a `tandem run`: see joins_run()), until its controller ends or refuses it, or
// until a controller that was lost has not come back within its grace (`--node-grace-s` of the
// controller). While a controller is away that has died or hangs, or the network is cut, the agent
// keeps its ranks and dials. When the network was cut for the whole grace, the controller at its
// other end places the actors elsewhere: the ranks end before, and the node dials as a new
// incarnation for as long once more, at least for five minutes.
//
// With --keep-controller, by which `tandem up` starts its node, it also starts the controller of
// the state folder again when that has died or hangs (controller_keeper.h), and the controller
// starts such a node again (node_keeper.h). Another node has a parent that does (node_watch.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/verb.h"
#include "actors/main/background.h"
#include "actors/main/rank_start.h"
#include "runtime/link/port_range.h"

namespace tandem::app {

struct NodeCommand {
  static cli::VerbHelp help();
  void options(cli::Options& options);
  Result<int> run(const cli::VerbContext& context);

  std::optional<std::string> controller;  // "host:port"; default: from controller.json
  std::optional<std::string> name;        // default: the host's name
  // The address at which ranks listen for other hosts, and the address by which those reach it;
  // default: the address from which this machine reaches `controller`.
  std::optional<std::string> bind, advertise;
  std::optional<double> cpus;                   // default: those that this process may use
  std::optional<std::int64_t> memory_bytes;     // at most; default: all that the machine has left
  bool keep_controller = false;                 // of this state folder; not with `controller`
  link::PortRange ports;                        // at which ranks listen for other hosts
  std::optional<std::filesystem::path> of_run;  // the state folder of a `tandem run`'s cluster
  // The folder of such a cluster on another host, in which its controller says where it listens.
  std::optional<std::filesystem::path> joined;

  // The controller at `controller` is that of such a cluster.
  bool join = false;
  RankJob ranks;  // of the processes of a launcher

  ClusterFolder cluster() const;
  // Whoever gave the hosts of a `tandem run` ends them all at once, or one of them alone. SIGTERM
  // tells the controller that this host is to end, whose actors it moves; the node ends when it has
  // no rank any more, or no link, with 143 unless the run is over. SIGINT ends it at once.
  bool joins_run() const { return joined || join; }
};

// The words after `tandem` that start this node.
std::vector<std::string> node_words(const NodeCommand& command);

}  // namespace tandem::app
