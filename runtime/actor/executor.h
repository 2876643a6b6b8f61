// What runs actors. Two implementations: ThreadedExecutor (threads, the machine's clock) and
// SimulatedExecutor (one thread, virtual time, one seed). Actors see neither, only their Context.
//
// Invariants
//   EX-1  One actor's handlers never run at the same time.
//   EX-2  Messages from one sender to one receiver are handled in the order they were sent.
//   EX-3  A timer never runs before its time, nor after cancel().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"

namespace tandem::runtime {

using TimerId = Id<struct TimerTag>;

// One actor with its mailbox, as an executor sees it.
class Cell : public std::enable_shared_from_this<Cell> {
 public:
  virtual ~Cell() = default;
  // Handles at most `messages_max` messages; true when more are waiting.
  virtual bool run(int messages_max) = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual Time now() const = 0;
  // The cell has become runnable; called once per idle-to-runnable change, from any thread.
  virtual void schedule(std::shared_ptr<Cell> cell) = 0;
  // Runs `function` once at or after `when`, on an executor thread. From any thread.
  virtual TimerId at(Time when, std::function<void()> function) = 0;
  virtual void cancel(TimerId timer) = 0;
  virtual std::uint64_t draw_seed() = 0;  // for the Rng of a new actor
};

}  // namespace tandem::runtime
