// Starts the controller of a state folder again when it has died or hangs: with the same options,
// after the pauses of a restart budget (scheduler/fleet/restart_budget.h), and not more often than
// that allows. Used by one thread, that of the node which keeps it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/main/background.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/base/rng.h"
#include "runtime/node/daemon.h"
#include "runtime/node/signals.h"
#include "scheduler/fleet/restart_budget.h"

namespace tandem::app {

class ControllerKeeper {
 public:
  // Takes the state folder's node.lock, so that one node at a time keeps a controller. Errors:
  // another node does (kFailed); no controller is up (kUnreachable).
  static Result<ControllerKeeper> take(ClusterFolder cluster);

  // Whether the process of the controller has ended.
  bool has_ended() const { return end_->wait_until(steady_now()); }

  // Ends the controller if it lives, since it hangs then, and starts another one, again and again
  // if need be. Returns true once a controller listens, which may be one that a user has started
  // meanwhile; false if a signal came first, and then no controller that it has started is left.
  // Error: it died too often, or cannot be started.
  Result<bool> bring_back(node::Signals& signals);

 private:
  enum class Start { kUp, kFailed, kSignal };

  ControllerKeeper(ClusterFolder cluster, FileLock lock)
      : cluster_(std::move(cluster)), lock_(std::move(lock)) {}
  Result<void> adopt();  // the controller that runs
  void end_hung() const;
  Result<Start> start(node::Signals& signals);

  ClusterFolder cluster_;
  FileLock lock_;
  pid_t pid_ = 0;
  std::optional<node::ProcessEnd> end_;
  std::vector<std::string> words_;      // that started it
  std::optional<node::Daemon> daemon_;  // while it is a child of this process
  Time up_since_{};
  scheduler::RestartBudget budget_{{.intensity = 30,
                                    .backoff_first = std::chrono::milliseconds(200),
                                    .backoff_max = std::chrono::seconds(2),
                                    .healthy_after = std::chrono::seconds(2)}};
  Rng rng_{static_cast<std::uint64_t>(steady_now().ns)};
};

}  // namespace tandem::app
