#include "actors/main/run_cluster.h"

#include <unistd.h>

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

// Removes the folders of commands that were killed with all of their processes.
void remove_left_folders(const fs::path& clusters) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(clusters, ignored)) {
    const ClusterFolder folder{.path = entry.path(), .of_run = true};
    if (!folder.path.filename().string().starts_with(kPrefix) ||
        FileLock::held(folder.owner_lock()) || controller_process(folder.path) ||
        running_keeper(folder.path))
      continue;
    fs::remove_all(folder.path, ignored);
  }
}

void kill_process(std::optional<pid_t> pid) {
  if (!pid) return;
  const node::ProcessEnd end(*pid);
  end.signal(SIGKILL);
  (void)end.wait_until(steady_now() + kEndTimeout);
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
  std::string made = (clusters / (std::string(kNewPrefix) + "XXXXXX")).string();
  if (::mkdtemp(made.data()) == nullptr) return file_error("make a folder for the cluster", made);
  ClusterFolder folder{.path = made, .of_run = true};
  auto owner = FileLock::take(folder.owner_lock(), "the folder " + made, "");
  if (!owner) return owner.error();
  folder.path = clusters / (kPrefix + made.substr(made.size() - 6));
  std::error_code failure;
  fs::rename(made, folder.path, failure);
  if (failure) return file_error("make a folder for the cluster", folder.path);

  std::unique_ptr<RunCluster> cluster(new RunCluster(folder, *std::move(owner)));
  cluster->memory_bytes_ = options.memory_bytes;
  cluster->verbose_ = options.verbose;
  const ControllerCommand command{.listen = {.port = 0}, .of_run = folder.path};
  auto started = node::fork_daemon("the controller", [&] {
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
      if (code && *code != 0) return code;
    }
    return Error{ErrorCode::kFailed, "the cluster of this run ended while it was started", "",
                 "was one of its processes killed?"};
  }
  return Error{ErrorCode::kTimedOut, "the cluster of this run did not come up",
               folder_.path.string(), "is the machine overloaded?"};
}

Result<std::optional<int>> RunCluster::wait_for_node(node::Signals& signals) {
  if (auto end = wait_for_word(signals); !end || *end) return end;
  std::vector<std::string> words =
      node_words({.memory_bytes = memory_bytes_, .keep_controller = true, .of_run = folder_.path});
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
void RunCluster::end() {
  for (const auto& process : {running_keeper, controller_process}) {
    const auto pid = process(folder_.path);
    if (!pid) continue;
    const node::ProcessEnd end(*pid);
    end.signal(SIGTERM);
    (void)end.wait_until(steady_now() + kEndTimeout);
  }
  end_by_force();
}

void RunCluster::end_by_force() {
  if (std::exchange(ended_, true)) return;
  // Each may start the other again until both are gone.
  const Time late = steady_now() + kEndTimeout;
  while (may_come_back() && steady_now() < late) {
    kill_process(running_keeper(folder_.path));
    kill_process(controller_process(folder_.path));
  }
  for (const auto& daemon : {&node_, &controller_})
    if (*daemon) {
      node::end_daemon(**daemon, Duration::zero());  // one that has no lock yet
      node::reap(**daemon);
    }
  kill_orphans(folder_.path);
  weights::reclaim_stale_weights("");
  std::error_code ignored;  // the next `tandem run` removes what is left
  fs::remove_all(folder_.path, ignored);
}

}  // namespace tandem::app
