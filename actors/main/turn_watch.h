// Finds out an actor of this process whose handler hangs, as on a disk that no longer answers, by
// the rule that serves ranks (scheduler/fleet/hang_timeout.h). A controller and a node's agent
// watch themselves by it: their sockets stay lively meanwhile, so that no peer could tell. Such a
// process ends itself, and whoever keeps it starts another (controller_keeper.h, node_keeper.h,
// node_watch.h); the ranks work on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/actor/threaded_executor.h"
#include "runtime/base/clock.h"
#include "runtime/link/progress.h"

namespace tandem::app {

class TurnWatch {
 public:
  // `waited`: for how long the process's threads have waited for a processor so far (PS-1).
  TurnWatch(int threads, const std::function<Duration()>& waited);
  TurnWatch(const TurnWatch&) = delete;
  TurnWatch& operator=(const TurnWatch&) = delete;
  ~TurnWatch();

  // For the executor with so many threads, which this object outlives.
  actor::ThreadedExecutor::OnTurn on_turn();
  // The handler that runs on this thread makes progress. Nothing happens elsewhere.
  static void beat();

  // Since when a handler has hung, as a duration; nullopt where none does. Call it from one thread,
  // several times a second: a longer pause counts as little (link::Stillness).
  std::optional<Duration> hung(Time now);
  // Ends this process as a signal would, and says why, where one hangs.
  void end_if_hung(const char* process);

 private:
  struct Thread;
  std::vector<std::unique_ptr<Thread>> threads_;
};

// An executor whose turns are watched.
struct WatchedExecutor {
  WatchedExecutor(int threads, std::uint64_t seed);
  TurnWatch watch;
  actor::ThreadedExecutor executor;
};

}  // namespace tandem::app
