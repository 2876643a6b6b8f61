#include "actors/main/run_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include "actors/main/cluster.h"
#include "actors/main/node_command.h"
#include "runtime/base/secret.h"
#include "runtime/weights/weight_family.h"

namespace tandem::app {

namespace fs = std::filesystem;

namespace {

constexpr Duration kHearSignal = std::chrono::milliseconds(100);
constexpr const char* kPrefix = "run-";
// A folder has this prefix until its owner has its lock.
constexpr const char* kNewPrefix = "new-";
// The prefix of a folder that rank 0 of a launcher names (rank_start.h).
constexpr const char* kRanksPrefix = "ranks-";
// A new folder that is older was left by a command that ended before it had the lock.
constexpr auto kNewFor = std::chrono::minutes(1);

bool is_new(const fs::path& folder) {
  std::error_code failure;
  const auto changed = fs::last_write_time(folder, failure);
  return failure || fs::file_time_type::clock::now() - changed < kNewFor;
}

// The locks by which the node and the controller of a cluster are found (background.h).
std::array<fs::path, 2> locks_of(const fs::path& cluster) {
  return {keeper_lock(cluster), cluster / "controller.lock"};
}

// Removes the folders of commands that were killed with all of their processes.
void remove_left_folders(const fs::path& clusters) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(clusters, ignored)) {
    const ClusterFolder folder{.path = entry.path(), .of_run = true};
    const std::string name = folder.path.filename().string();
    const bool young = name.starts_with(kNewPrefix) || name.starts_with(kRanksPrefix);
    const bool left = name.starts_with(kPrefix) || (young && !is_new(folder.path));
    if (!left || FileLock::held(folder.owner_lock()) || controller_process(folder.path) ||
        running_keeper(folder.path))
      continue;
    fs::remove_all(folder.path, ignored);
  }
}

struct OwnedFolder {
  ClusterFolder folder;
  FileLock owner;
};

// A new folder of this command's.
Result<OwnedFolder> make_folder(const fs::path& clusters) {
  std::string made = (clusters / (std::string(kNewPrefix) + "XXXXXX")).string();
  std::error_code ignored;
  if (::mkdtemp(made.data()) == nullptr) {
    Error error = file_error("make a folder for the cluster", made);
    fs::remove(clusters, ignored);  // where it is empty
    return error;
  }
  ClusterFolder folder{.path = made, .of_run = true};
  auto owner = FileLock::take(folder.owner_lock(), "the folder " + made, "");
  const auto without_folder = [&](Error error) {
    fs::remove_all(made, ignored);
    fs::remove(clusters, ignored);
    return error;
  };
  if (!owner) return without_folder(owner.error());
  folder.path = clusters / (kPrefix + made.substr(made.size() - 6));
  std::error_code failure;
  fs::rename(made, folder.path, failure);
  if (failure) return without_folder(file_error("make a folder for the cluster", folder.path));
  return OwnedFolder{std::move(folder), *std::move(owner)};
}

// The folder that other hosts know, which must be new: nodes would dial what an earlier controller
// has left there.
Result<OwnedFolder> make_folder_for_others(const fs::path& path, bool grows) {
  std::error_code failure;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failure);
  if (!failure && !fs::create_directory(path, failure) && !failure)
    return Error{ErrorCode::kInvalid, "the folder for the cluster is there already", path.string(),
                 "name a new one in --cluster"};
  if (failure) return file_error("make a folder for the cluster", path);
  ClusterFolder folder{.path = path, .of_run = true};
  const auto without_folder = [&](Error error) {
    fs::remove_all(path, failure);
    return error;
  };
  if (const auto made = make_private_directory(path); !made) return without_folder(made.error());
  if (const auto marked =
          write_file_atomic(folder.joinable_mark(), grows ? ClusterFolder::kGrows : "");
      !marked)
    return without_folder(marked.error());
  auto owner = FileLock::take(folder.owner_lock(), "the folder " + path.string(), "");
  if (!owner) return without_folder(owner.error());
  return OwnedFolder{std::move(folder), *std::move(owner)};
}

}  // namespace

Result<std::unique_ptr<RunCluster>> RunCluster::start(RunClusterOptions options,
                                                      const cli::Console& console) {
  const fs::path home = cli::tandem_home(), clusters = run_clusters(home);
  for (const fs::path& folder : {home, clusters})
    if (const auto made = make_private_directory(folder); !made) {
      Error error = made.error();
      error.message = "the state folder: " + error.message;
      if (error.help.empty()) error.help = "set TANDEM_HOME to a folder that you can write";
      return error;
    }
  remove_left_folders(clusters);
  const auto& shared = options.joinable;
  auto owned =
      shared ? make_folder_for_others(shared->folder, shared->grows) : make_folder(clusters);
  if (!owned) return owned.error();
  const ClusterFolder folder = owned->folder;
  std::unique_ptr<RunCluster> cluster(new RunCluster(folder, std::move(owned->owner)));
  cluster->memory_bytes_ = options.memory_bytes;
  cluster->verbose_ = options.verbose;
  cluster->joinable_ = options.joinable;
  ControllerCommand command{.listen = {.port = 0}, .of_run = folder.path};
  if (shared) {
    command.listen.bind = shared->bind;
    command.listen.port = shared->port;
    command.listen.health_port = shared->health_port;
    command.listen.node_grace_s = shared->node_grace_s;
    command.listen.ports = shared->ports;
    command.listen.plaintext_gang = shared->plaintext_gang;
  }
  auto started = node::fork_daemon("the controller", [&] {
    // It is no second `tandem run`, for people and for pkill.
    node::show_command_line(std::array<std::string, 2>{"tandem", "controller"});
    return run_controller(command, std::move(options.job), console, options.verbose);
  });
  if (!started) return started.error();
  cluster->controller_ = *std::move(started);
  return cluster;
}

RunCluster::~RunCluster() { end_by_force(); }

Result<std::optional<int>> RunCluster::wait_for_word(node::Signals& signals) {
  const node::Daemon& other = node_ ? *node_ : *controller_;
  const Time late = steady_now() + kUpTimeout;
  while (steady_now() < late) {
    if (signals.wait_for(Duration::zero()) != 0) return std::optional(kInterrupted);
    const auto heard = node::wait_for_word(*controller_, other, kHearSignal);
    if (heard == node::Heard::kWord) return std::optional<int>();
    if (heard == node::Heard::kNothing) continue;
    for (std::optional<node::Daemon>* const daemon : {&controller_, &node_}) {
      if (!*daemon) continue;
      (void)node::ProcessEnd((*daemon)->pid).wait_until(steady_now() + kHearSignal);
      const auto code = node::reap(**daemon);
      if (code) daemon->reset();  // its number may be another process's from now on
      // One that a signal ended, 128 or more, has not printed why.
      if (code && *code != 0 && *code < 128) return code;
    }
    return Error{ErrorCode::kFailed, "the cluster of this run ended while it was started", "",
                 "was one of its processes killed?"};
  }
  return Error{ErrorCode::kTimedOut, "the cluster of this run did not come up",
               folder_.path.string(), "is the machine overloaded?"};
}

Result<std::optional<int>> RunCluster::wait_for_node(node::Signals& signals) {
  if (auto end = wait_for_word(signals); !end || *end) return end;
  NodeCommand command{
      .memory_bytes = memory_bytes_, .keep_controller = true, .of_run = folder_.path};
  if (joinable_) {
    command.name = joinable_->node_name;
    command.ports = joinable_->ports;
  }
  std::vector<std::string> words = node_words(command);
  if (verbose_) words.emplace_back("-v");
  auto node = start_role(std::move(words), folder_.log_of(kNodeRole));
  if (!node) return node.error();
  node_ = *std::move(node);
  return wait_for_word(signals);
}

bool RunCluster::may_come_back() const {
  return running_keeper(folder_.path) || controller_process(folder_.path);
}

// The node first: one that ends in order is not started again, and starts no controller again. One
// after the other, since two that close their link at once wait for each other.
void RunCluster::end(node::Signals& signals) {
  for (const fs::path& lock : locks_of(folder_.path)) {
    const auto process = node::process_of_lock(lock);
    if (!process) continue;
    process->signal(joinable_ ? SIGINT : SIGTERM);
    const Time late = steady_now() + kEndTimeout;
    while (!process->wait_until(std::min(late, steady_now() + kHearSignal)) && steady_now() < late)
      if (is_force(signals.wait_for(Duration::zero()))) return end_by_force();
  }
  end_by_force();
}

void RunCluster::end_by_force() {
  if (std::exchange(ended_, true)) return;
  // Each may start the other again until both are gone.
  const Time late = steady_now() + kEndTimeout;
  while (may_come_back() && steady_now() < late)
    for (const fs::path& lock : locks_of(folder_.path))
      if (const auto process = node::process_of_lock(lock)) {
        process->signal(SIGKILL);
        (void)process->wait_until(steady_now() + kEndTimeout);
      }
  for (std::optional<node::Daemon>* const daemon : {&node_, &controller_}) {
    if (!*daemon) continue;
    // One that has no lock yet. Nobody has waited for it: its number is no other process's.
    (void)::kill((*daemon)->pid, SIGKILL);
    (void)node::ProcessEnd((*daemon)->pid).wait_until(steady_now() + kEndTimeout);
    if (node::reap(**daemon)) daemon->reset();
  }
  kill_orphans(folder_.path);
  weights::reclaim_stale_weights("");
  { const FileLock released = std::move(owner_); }  // a network's file system keeps an open file
  std::error_code ignored;                          // the next `tandem run` removes what is left
  fs::remove_all(folder_.path, ignored);
}

}  // namespace tandem::app
