// Keeps an agent on each host of `tandem up --hosts`: carries out what the core of each host
// decides (actors/launch/host_core.h), by a child process that is ssh, and a second one while our
// files are copied. All children end with this process, and a host's script notices that.
//
// Used by one thread; the children's pipes are served by the thread of `io`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/cli/console.h"
#include "actors/launch/host_core.h"
#include "actors/launch/ssh_hosts.h"
#include "actors/main/host_build.h"
#include "runtime/base/guarded.h"
#include "runtime/link/io_thread.h"
#include "runtime/link/socket_folder.h"
#include "runtime/node/line_child.h"

namespace tandem::app {

struct HostKeeperOptions {
  std::vector<launch::SshHost> hosts;
  launch::SshSettings ssh;
  bool copies = true;
  HostBuild build;
  launch::HostAgent agent;  // without its name, which is that of each host
};

class HostKeeper {
 public:
  static constexpr Duration kLookEvery = std::chrono::milliseconds(100);

  // `sockets`: where ssh's control sockets are.
  HostKeeper(HostKeeperOptions options, link::IoThread& io, link::SocketFolder sockets,
             const cli::Console& console);
  ~HostKeeper();
  HostKeeper(const HostKeeper&) = delete;
  HostKeeper& operator=(const HostKeeper&) = delete;

  void look();  // at what has come since; to be called every kLookEvery
  void tell_to_end(bool at_once);
  bool all_over() const;
  bool all_given_up() const;
  // Whether a host's agent runs whose node is not known to be ready, and the names of ready nodes.
  bool awaits_nodes() const;
  void nodes_ready(const std::set<std::string>& names);

 private:
  struct Child;
  struct Host;
  struct Arrived;
  void carry_out(Host& host, launch::HostEffects effects);
  void connect(Host& host);
  void copy(Host& host);
  void disconnect(Host& host);
  void take(const Arrived& arrived);
  void check_machine(Host& host);
  void send(Host& host, std::vector<std::string> lines);
  Child start(Host& host, std::vector<std::string> argv);

  const HostKeeperOptions options_;
  const cli::Console& console_;
  const node::LineChildSpawner spawn_;
  link::SocketFolder sockets_;
  const std::string machine_;                               // this one
  std::shared_ptr<Guarded<std::vector<Arrived>>> arrived_;  // shared with the children's events
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace tandem::app
