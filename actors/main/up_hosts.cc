// The cluster comes first, so that the agents have something to dial. Its address is the one by
// which this host reaches the others: the kernel knows it without a packet, once ssh's settings
// have told what a name of ~/.ssh/config stands for.
#include "actors/main/up_hosts.h"

#include <fcntl.h>

#include <csignal>
#include <ostream>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "actors/cli/api_client.h"
#include "actors/main/background.h"
#include "actors/main/host_build.h"
#include "actors/main/host_keeper.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"
#include "runtime/link/curve.h"
#include "runtime/link/endpoint.h"
#include "runtime/node/program_output.h"
#include "runtime/node/signals.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr Duration kSshSaysWithin = std::chrono::seconds(10);
constexpr std::size_t kSettingsBytesMax = 1 << 20;
constexpr std::uint64_t kHostsFileBytesMax = 1 << 20;
constexpr Duration kLookAtNodes = std::chrono::seconds(1);
constexpr Duration kReadyAnswer = std::chrono::seconds(2);
constexpr std::size_t kClusterDigits = 16;
constexpr std::uint16_t kSshPort = 22;
constexpr std::size_t kHomeBytesMax = link::kSocketPathMax - 45;  // room for the names below it

// What `ssh -G` prints; empty where it fails.
std::string ssh_settings(const UpHosts& hosts, const launch::SshHost& host) {
  const OwnedFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto program = node::ProgramOutput::start({.argv = launch::settings_argv(hosts.ssh, host),
                                                   .environment = {},
                                                   .silence_max = kSshSaysWithin},
                                                  input);
  std::string text;
  std::string part(4096, '\0');
  while (program && text.size() < kSettingsBytesMax) {
    const auto read = (*program)->read(part);
    if (!read || *read == 0) break;
    text.append(part, 0, *read);
  }
  return text;
}

// The address of this host for the others, where --bind names none.
Result<std::string> address_for(const UpHosts& hosts) {
  std::string chosen, towards;
  Error last{ErrorCode::kUnreachable, "no host is known by an address"};
  for (const launch::SshHost& host : hosts.chosen.hosts) {
    const std::string there = launch::address_in_settings(ssh_settings(hosts, host), host);
    const auto address = link::local_address_towards({.host = there, .port = kSshPort});
    if (!address) last = address.error();
    if (!address || link::is_loopback(*address)) continue;
    if (chosen.empty()) {
      chosen = *address;
      towards = host.name;
    }
    if (chosen != *address)
      return Error{ErrorCode::kInvalid,
                   "this host reaches " + towards + " from " + chosen + ", and " + host.name +
                       " from " + *address,
                   "", "name the address at which all of them reach this one with --bind"};
  }
  if (!chosen.empty()) return chosen;
  last.help = "name the address at which the hosts reach this one with --bind";
  return last;
}

// Where the agents dial: the controller that runs.
Result<std::string> controller_address() {
  const auto file = read_controller_file(cli::tandem_home());
  if (!file) return file.error();
  const auto at = link::parse_endpoint(file->control);
  if (at && !at->is_local() && !link::is_loopback(at->host)) return file->control;
  return Error{ErrorCode::kInvalid, "the cluster that is up is for this host alone",
               cli::tandem_home().string(),
               "`tandem down`, then again: it listens where other hosts reach it from then on"};
}

Result<HostKeeperOptions> keeper_options(const UpHosts& hosts, const link::PortRange& ports,
                                         const fs::path& home) {
  const auto controller = controller_address();
  if (!controller) return controller.error();
  const auto controller_public = read_secret(home / "keys" / "controller.public");
  if (!controller_public) return controller_public.error();
  const auto node_secret = read_secret(home / "keys" / "node.secret");
  if (!node_secret) return node_secret.error();
  auto build = stage_build(home / "hosts-build");
  if (!build) return build.error();
  const std::string cluster =
      sha256_hex(std::as_bytes(std::span(*controller_public))).substr(0, kClusterDigits);
  return HostKeeperOptions{.hosts = hosts.chosen.hosts,
                           .ssh = hosts.ssh,
                           .copies = !hosts.no_copy,
                           .build = *std::move(build),
                           .agent = {.name = {},
                                     .controller = *controller,
                                     .cluster = cluster,
                                     .controller_public = *controller_public,
                                     .node_secret = *node_secret,
                                     .ports = to_string(ports)}};
}

bool cluster_is_up() {
  return running_keeper(cli::tandem_home()) || controller_process(cli::tandem_home());
}

void look_at_nodes(HostKeeper& keeper) {
  const auto address = cli::resolve_address(std::nullopt);
  if (!address) return;
  const auto nodes = cli::ApiClient(*address, kReadyAnswer).get("/nodes");
  std::set<std::string> ready;
  if (!nodes) return;
  for (const auto& node : *nodes)
    if (node.value("state", "") == "Ready") ready.insert(node.value("name", ""));
  keeper.nodes_ready(ready);
}

// Looks after the hosts until their agents have ended, which a signal asks for: with the cluster,
// by `down`, or, where that is empty and the cluster goes on without them, once they have no actors
// any more, and at once with a second signal.
int keep(HostKeeper& keeper, const std::function<int()>& down, node::Signals& signals,
         const cli::Console& console) {
  int signals_seen = 0, code = 0;
  bool ending = false;
  Time looked{};
  while (!keeper.all_over()) {
    keeper.look();
    if (!ending && keeper.awaits_nodes() && steady_now() - looked >= kLookAtNodes) {
      look_at_nodes(keeper);
      looked = steady_now();
    }
    const int signal = signals.wait_for(HostKeeper::kLookEvery);
    if (!ending && signal == 0 && !cluster_is_up()) {
      console.err << "the cluster is down\n" << std::flush;
      keeper.tell_to_end(true);
      ending = true;
    }
    if (signal == 0) continue;
    ending = true;
    if (++signals_seen == 1 && down) {
      code = down();
      keeper.tell_to_end(true);
    } else {
      if (signals_seen == 1)
        console.err << "the hosts are emptied first; once more to end them at once\n" << std::flush;
      keeper.tell_to_end(signals_seen > 1);
    }
  }
  return code;
}

}  // namespace

void add_up_hosts(cli::Options& options, UpHosts& hosts) {
  const cli::Option list =
      options
          .add("--hosts", hosts.list,
               "Also start an agent on each of these hosts, by ssh, and stay in the foreground: "
               "[USER@]HOST[:PORT] separated by commas")
          .value("HOSTS");
  options.add("--hosts-file", hosts.file, "The same, one host in each line of a file")
      .value("FILE")
      .offers("files")
      .excludes(list);
  options.add("--ssh", hosts.ssh.command, "The command that is ssh, as \"ssh -i key\"")
      .value("COMMAND");
  options
      .add("--ssh-option", hosts.ssh.options,
           "An option of ssh, as ProxyJump=gate or StrictHostKeyChecking=accept-new; repeatable")
      .value("OPTION")
      .one_each();
  options.flag(
      "--no-copy", hosts.no_copy,
      "Refuse hosts that have another build than this one, or none, instead of copying it");
  options.check([&hosts]() -> Result<void> {
    const launch::SshSettings none;
    if (!hosts.given()) {
      if (hosts.ssh.command == none.command && hosts.ssh.options.empty() && !hosts.no_copy)
        return {};
      return Error{ErrorCode::kInvalid, "--ssh, --ssh-option and --no-copy are for --hosts", "",
                   "name the hosts"};
    }
    Result<std::string> text = std::string();
    if (hosts.file) text = read_file(*hosts.file, kHostsFileBytesMax);
    if (!text) return text.error();
    auto chosen = hosts.file ? launch::parse_hosts_file(*text, hosts.file->string())
                             : launch::parse_hosts(*hosts.list);
    if (!chosen) return chosen.error();
    hosts.chosen = *std::move(chosen);
    return {};
  });
}

Result<int> up_with_hosts(const UpHosts& hosts, const cli::ListenOptions& listen,
                          const ClusterOfHosts& cluster, const cli::Console& console) {
  for (const std::string& warning : hosts.chosen.warnings)
    console.err << "warning: " << warning << "\n";
  const fs::path home = cli::tandem_home();
  if (const auto made = make_private_directory(home); !made) return made.error();
  const auto lock = FileLock::take(home / "hosts.lock", "the list of hosts of " + home.string(),
                                   "end that `tandem up --hosts` first");
  if (!lock) return lock.error();
  const bool was_up = cluster_is_up();
  cli::ListenOptions listens = listen;
  if (!was_up && listens.bind == link::kLoopback) {
    auto address = address_for(hosts);
    if (!address) return address.error();
    listens.bind = *std::move(address);
  }
  if (const int code = cluster.up(listens); code != 0) return code;
  auto options = keeper_options(hosts, listen.ports, home);
  // ssh adds a random suffix to the path of a socket that it makes.
  const bool short_home = home.string().size() <= kHomeBytesMax;
  auto sockets = link::SocketFolder::make(short_home ? home : fs::path());
  if (!options || !sockets) {
    if (!was_up) cluster.down();
    return options ? sockets.error() : options.error();
  }
  node::Signals signals({SIGINT, SIGTERM});  // before the first thread
  init_logging("up", LogLevel::kWarnings);
  link::IoThread io("hosts");
  HostKeeper keeper(*std::move(options), io, *std::move(sockets), console);
  const int code = keep(keeper, was_up ? nullptr : cluster.down, signals, console);
  if (!keeper.all_given_up()) return code;
  if (!was_up && cluster_is_up()) cluster.down();
  return Error{ErrorCode::kUnreachable, "no host has an agent", "",
               "the lines above say why; try `ssh HOST tandem version`"};
}

}  // namespace tandem::app
