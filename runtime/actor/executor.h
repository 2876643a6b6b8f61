// The object that runs actors. There are two: ThreadedExecutor (threads, the machine's clock) and
// SimulatedExecutor (one thread, virtual time, one seed). Actors see neither, only their Context.
//
// Invariants
//   XR-1  One actor's handlers never run at the same time.
//   XR-2  Messages from one sender to one receiver are handled in the order they were sent.
//   XR-3  A timer never runs before its time, nor after cancel().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"

namespace tandem::actor {

using TimerId = Id<struct TimerTag>;

// One actor with its mailbox, as an executor sees it. An executor holds a cell from schedule()
// until run() returns false; in between no second schedule() comes, so that XR-1 holds without a
// lock.
class Cell : public std::enable_shared_from_this<Cell> {
 public:
  virtual ~Cell() = default;
  // Handles at most `messages_max` messages. True: more wait, and the executor calls again. False:
  // the cell is idle, or has ended, and is scheduled again when a message comes.
  virtual bool run(int messages_max) = 0;
};

// Outlives the Systems that use it.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual Time now() const = 0;
  // The cell has become runnable; called once per idle-to-runnable change, from any thread.
  virtual void schedule(std::shared_ptr<Cell> cell) = 0;
  // Runs `function` once at or after `when`, on an executor thread; it must not block. at() and
  // cancel() may be called from any thread; cancel() does nothing where the timer has run or its id
  // is unknown.
  virtual TimerId at(Time when, std::function<void()> function) = 0;
  virtual void cancel(TimerId timer) = 0;
  virtual std::uint64_t draw_seed() = 0;  // for the Rng of a new actor
  // The cell that runs on this thread has handled a message, and goes on with the next one.
  virtual void handled() {}
};

}  // namespace tandem::actor
