// The processes of a cluster in the background, as its commands find and start them.
//
// A cluster has a folder for its state: TANDEM_HOME, or, for that of a `tandem run`, one of its own
// (run_cluster.h). A controller is found by controller.json there, and is alive only while
// controller.lock is held: a killed controller leaves its file, with a pid and a port that other
// processes may have by now. In the same way a node that keeps its controller (node_command.h)
// holds node.lock.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/shared_options.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/result.h"
#include "runtime/node/daemon.h"

namespace tandem::app {

inline constexpr std::int64_t kNodesMax = 65536;  // that a command may ask for
inline constexpr const char* kNodeRole = "node";  // the first argument of a node's process
// How long a controller may do nothing until it says its first word, or a node until it has joined.
inline constexpr Duration kUpTimeout = std::chrono::minutes(2);
// How long a process that is asked to end may take, or one that got SIGKILL.
inline constexpr Duration kEndTimeout = std::chrono::seconds(10);

// Where the state of a cluster is.
struct ClusterFolder {
  std::filesystem::path path;
  // Whether it is the cluster of a `tandem run`: it ends with that command, and its controller and
  // its node write to the command's terminal.
  bool of_run = false;

  // `of_run`: the value of --of-run; without it that of this user's cluster.
  static ClusterFolder chosen(const std::optional<std::filesystem::path>& of_run);
  // The log of the role's process; empty where it writes to a terminal (DaemonSpec::log).
  std::filesystem::path log_of(const char* role) const;
  // The lock that the `tandem run` holds as long as it lives (runtime/node/owner.h).
  std::filesystem::path owner_lock() const { return path / "owner.lock"; }
  // Whether nodes of other hosts may join the cluster of a `tandem run`. An engine that gave the
  // hosts sends SIGTERM to all processes at once: it is for the `tandem run` alone, which lets its
  // job save, and ends the others by SIGINT.
  std::filesystem::path joinable_mark() const { return path / "joinable"; }
  bool is_joinable() const;
  // Whether its jobs start before all of its nodes have come (controller::ClusterRules).
  bool grows() const;
  static constexpr const char* kGrows = "grows\n";  // the content of the mark where it does
  // The signals that end its controller and its node. Where SIGTERM is none of them, this process
  // ignores it from here on.
  std::initializer_list<int> choose_end_signals() const;
};
// Set for the ranks of a cluster that hosts of an engine's make together: SIGTERM from outside is
// not for them.
inline constexpr const char* kTogetherVariable = "TANDEM_ENDS_TOGETHER";

// Where the state folders of the clusters of `tandem run` are.
std::filesystem::path run_clusters(const std::filesystem::path& home);
// The `tandem run` whose controller this process is; none where it is no such controller.
std::optional<pid_t> run_command_of(const std::filesystem::path& home, pid_t controller);

// What a controller and a node of a `tandem run` take besides: the state folder.
void add_of_run(cli::Options& options, std::optional<std::filesystem::path>& of_run);
inline constexpr const char* kOfRunOption = "--of-run";

// The content of controller.json.
struct ControllerFile {
  pid_t pid = 0;
  std::string control_socket, control, http;  // its addresses
  std::vector<std::string> arguments;         // controller_words() that started it
};
// kUnreachable where there is none, or a controller that is starting has not written it yet. The
// controller that it names may have ended.
Result<ControllerFile> read_controller_file(const std::filesystem::path& cluster);
// The same of a controller that runs: it holds the lock of the state folder.
std::optional<ControllerFile> running_controller(const std::filesystem::path& cluster);
// The process that has the lock of the state folder: a controller that runs, starts or ends.
std::optional<pid_t> controller_process(const std::filesystem::path& cluster);

// The lock of the node that keeps the controller of this state folder, and that node's process.
std::filesystem::path keeper_lock(const std::filesystem::path& cluster);
std::optional<pid_t> running_keeper(const std::filesystem::path& cluster);

// A folder for each node that was started with this state folder (runtime/node/kept_ranks.h).
std::filesystem::path node_folders(const std::filesystem::path& cluster);
// Kills the ranks of this state folder whose agent has died, and which no agent has found since. An
// agent that lives holds its folder's lock. Returns how many there were.
int kill_orphans(const std::filesystem::path& cluster);

// The words after `tandem` that start a controller with these options.
std::vector<std::string> controller_words(const cli::ListenOptions& listen,
                                          const std::optional<std::filesystem::path>& of_run);
// Waits until a controller says its first word, for as long as it is at work, up to an hour: it
// reads all data of the jobs that it takes up. kNothing: it has used no CPU time for kUpTimeout, or
// the hour is over. kEnd: it has ended.
// `goes_on` is asked about ten times a second, and false ends the wait with kNothing.
node::Heard wait_until_up(const node::Daemon& controller, const std::function<bool()>& goes_on);
// Writes some bytes into the folder and removes them. Errors: it takes none. A log that takes no
// line cannot say why its process has ended, so a user's command tries its folder before.
Result<void> try_state_folder(const std::filesystem::path& folder);
// Starts this binary with these words, in the background; an empty `log` is that of DaemonSpec.
Result<node::Daemon> start_role(std::vector<std::string> words, const std::filesystem::path& log);

LogLevel log_level(bool verbose, const ClusterFolder& cluster);

}  // namespace tandem::app
