// Finds out an actor of this process whose handler hangs, by the rule that serves ranks
// (scheduler/fleet/hang_timeout.h). A controller and a node's agent watch themselves by it: their
// sockets stay lively meanwhile, so that no peer could tell. Such a process ends itself, and
// whoever keeps it starts another (controller_keeper.h, node_keeper.h, node_watch.h); the ranks
// work on.
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

  // While it lives, the handler that makes it reads what may take as long as a model's load.
  class Reading {
   public:
    Reading();
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
  };

  // For how long a handler has made no progress, if it counts as hung; else nothing. Call it from
  // one thread, several times a second: a longer pause counts as little (link::Stillness).
  std::optional<Duration> hung(Time now);
  // Where one hangs, says so and ends this process as a signal would. A log that takes no line
  // delays that by some seconds.
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
