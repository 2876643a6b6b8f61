// The cluster of one `tandem run`: a controller and a node in the background that keep each other
// alive, as those of `tandem up` do, so that the job outlives the death of either. Their state is
// in a folder below TANDEM_HOME/clusters, or, where nodes of other hosts join, in one that the user
// names; runs, token and caches are those of TANDEM_HOME.
//
//   RN-1  Nothing of the cluster outlives the process that made it, however that ends: controller,
//         node and ranks watch it (runtime/node/owner.h), and end with it. The node removes the
//         folder then; the next `tandem run` removes what was left. Nodes of other hosts that have
//         joined end when their link has been lost for the grace; a folder that the user named is
//         the user's to remove where this process was killed.
//
// Used by one thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/cli/api_client.h"
#include "actors/cli/console.h"
#include "actors/main/background.h"
#include "actors/main/controller_process.h"
#include "runtime/base/file.h"
#include "runtime/node/agent_messages.h"
#include "runtime/node/daemon.h"
#include "runtime/node/signals.h"

namespace tandem::app {

// A cluster that nodes of other hosts may join.
struct JoinableCluster {
  std::filesystem::path folder;          // where its state is, and where those nodes find it
  std::string bind;                      // the address of this host that they reach
  std::optional<std::string> node_name;  // of the node on this host; default: the host's name
  bool grows = false;                    // ClusterFolder::grows
  // As in cli::ListenOptions.
  int port = 0;
  std::optional<std::int64_t> health_port;
  std::int64_t node_grace_s = node::kNodeGraceDefault / std::chrono::seconds(1);
  link::PortRange ports;  // of the controller and of the node on this host
  bool plaintext_gang = false;
};

struct RunClusterOptions {
  std::optional<JoinableCluster> joinable = {};
  std::optional<std::int64_t> memory_bytes;  // that the node offers; see NodeCommand
  bool verbose = false;
  ExpectedJob job;  // the controller's process gets it by being a copy of this one
};

// The status by which a shell reports a program that SIGINT ended: 128 + 2.
inline constexpr int kInterrupted = 130;

class RunCluster {
 public:
  // Makes the folder and starts the controller. Call it before the process's first thread, once
  // the signals that it waits for are blocked.
  static Result<std::unique_ptr<RunCluster>> start(RunClusterOptions options,
                                                   const cli::Console& console);
  ~RunCluster();  // end_by_force()

  // Starts the node and waits until it is Ready. Returns the exit code with which the command is to
  // end instead: a signal came first, or a process has ended and has printed why.
  Result<std::optional<int>> wait_for_node(node::Signals& signals);
  Result<cli::ApiAddress> address() const { return cli::address_in(folder_.path); }
  const ClusterFolder& folder() const { return folder_; }
  // Whether a signal that is not the first ends all at once. An engine that gave the hosts may send
  // SIGTERM again and again.
  bool is_force(int signal) const { return signal != 0 && !(joinable_ && signal == SIGTERM); }
  // Whether the controller runs, or somebody is there who starts it again.
  bool may_come_back() const;

  // The job is over: the node and the controller end in order, or at once where a signal comes.
  void end(node::Signals& signals);
  // Ends all of it at once.
  void end_by_force();

 private:
  RunCluster(ClusterFolder folder, FileLock owner)
      : folder_(std::move(folder)), owner_(std::move(owner)) {}
  Result<std::optional<int>> wait_for_word(node::Signals& signals);

  const ClusterFolder folder_;
  FileLock owner_;
  std::optional<JoinableCluster> joinable_;
  std::optional<std::int64_t> memory_bytes_;
  bool verbose_ = false;
  std::optional<node::Daemon> controller_, node_;  // the first ones
  bool ended_ = false;
};

}  // namespace tandem::app
