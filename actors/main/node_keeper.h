// Starts the node that keeps this controller again when its process has died, or has had no link
// to the controller for kHungAfter: the two watch each other (controller_keeper.h). A node that
// keeps a controller leaves its words in a file of the state folder, and removes it when it ends in
// order: such a node is not started again. The end of its process is seen sooner than that of its
// link, which may come back. Used by the main thread of a controller.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/main/background.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/base/rng.h"
#include "runtime/node/daemon.h"
#include "scheduler/fleet/restart_budget.h"

namespace tandem::app {

// The file that tells with which words the node was started. It lasts as long as the object.
class NodeFile {
 public:
  static Result<NodeFile> write(const std::filesystem::path& cluster,
                                const std::vector<std::string>& words);
  NodeFile(NodeFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  NodeFile& operator=(NodeFile&&) = delete;
  ~NodeFile();

 private:
  explicit NodeFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

class NodeKeeper {
 public:
  static constexpr Duration kLookEvery = std::chrono::milliseconds(40);
  // Over twice link::kPeerTimeout, the silence that ends a link: a node that was only stopped for a
  // while comes back to it.
  static constexpr Duration kHungAfter = std::chrono::seconds(10);

  // `is_linked`: whether the node with this pid has a link now. `ended`: its process has ended.
  NodeKeeper(ClusterFolder cluster, std::function<bool(pid_t)> is_linked,
             std::function<void(pid_t)> ended)
      : cluster_(std::move(cluster)), is_linked_(std::move(is_linked)), ended_(std::move(ended)) {}
  void look();  // call it every kLookEvery

 private:
  struct Watched {
    pid_t pid;
    node::ProcessEnd end;
  };
  void watch(pid_t node);
  void died();

  const ClusterFolder cluster_;
  const std::function<bool(pid_t)> is_linked_;
  const std::function<void(pid_t)> ended_;
  std::optional<Watched> watched_;   // while its process lives
  std::int64_t unlinked_looks_ = 0;  // in a row; a stopped controller counts none

  std::optional<Time> up_since_;    // set while the node lives
  std::optional<Time> restart_at_;  // set while it is dead and will be started
  bool given_up_ = false;
  std::optional<node::Daemon> daemon_;  // the node, if this process has started it
  scheduler::RestartBudget budget_{{.intensity = 30,
                                    .backoff_first = std::chrono::milliseconds(100),
                                    .backoff_max = std::chrono::seconds(2),
                                    .healthy_after = std::chrono::seconds(2)}};
  Rng rng_{static_cast<std::uint64_t>(steady_now().ns)};
};

}  // namespace tandem::app
