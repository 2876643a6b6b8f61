// `tandem up --hosts`: the cluster of this host, and an agent on each of others that ssh reaches.
// Unlike `tandem up` alone it stays in the foreground: the agents end when it ends, however that
// ends (HO-3). Ctrl-C ends the agents, and with them the cluster, if this command has started it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "actors/cli/console.h"
#include "actors/cli/options.h"
#include "actors/cli/shared_options.h"
#include "actors/launch/ssh_hosts.h"
#include "runtime/base/result.h"

namespace tandem::app {

struct UpHosts {
  std::optional<std::string> list;
  std::optional<std::filesystem::path> file;
  launch::SshSettings ssh;
  bool no_copy = false;
  launch::HostList chosen = {};  // what either means, once the line is parsed

  bool given() const { return list || file; }
};
void add_up_hosts(cli::Options& options, UpHosts& hosts);

// How the cluster of this host is started and ended (cluster.h); each returns an exit code.
struct ClusterOfHosts {
  std::function<int(const cli::ListenOptions&)> up;
  std::function<int()> down;
};

// Starts the cluster where it is not up, at an address by which the hosts reach it, and keeps their
// agents. Returns the exit code: 0 after a signal, or once the cluster is down.
Result<int> up_with_hosts(const UpHosts& hosts, const cli::ListenOptions& listen,
                          const ClusterOfHosts& cluster, const cli::Console& console);

}  // namespace tandem::app
