// Runs the same actors on one thread in virtual time, from one seed. The seed decides which
// runnable actor is next, and seeds every Rng, so that a run repeats exactly. Time advances only
// when no actor is runnable, and then to the next timer: handlers take no time, unless one says by
// pass() how much. A test drives the executor by step() and run_until(); nothing here ever sleeps.
// All calls are made by the one thread.
//
// Several processes are simulated by several Systems on one executor. Messages between them travel
// by at() with a drawn delay (SimulatedNetwork of the tests).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "runtime/actor/executor.h"
#include "runtime/base/rng.h"

namespace tandem::actor {

class SimulatedExecutor final : public Executor {
 public:
  explicit SimulatedExecutor(std::uint64_t seed) : rng_(seed) {}

  Time now() const override { return now_; }
  void schedule(std::shared_ptr<Cell> cell) override { runnable_.push_back(std::move(cell)); }
  TimerId at(Time when, std::function<void()> function) override;
  void cancel(TimerId timer) override;
  std::uint64_t draw_seed() override { return rng_.next(); }

  // Lets one runnable actor, drawn at random, handle one message or turn; if none is runnable,
  // moves the time to the earliest timer and runs that. False: neither actors nor timers are left.
  bool step();
  // Steps until `done()`, which is the result, or until no step is left within `limit` of virtual
  // time from now. Timers behind the limit do not run, and the time stays at that of the last step.
  bool run_until(const std::function<bool()>& done, Duration limit);

  // The handler or timer that runs now takes so much time.
  void pass(Duration time) { now_ = now_ + time; }

  Rng& rng() { return rng_; }
  std::uint64_t steps() const { return steps_; }

 private:
  Time now_{};
  Rng rng_;
  std::vector<std::shared_ptr<Cell>> runnable_;  // in no order: the next one is drawn
  // Timers are ordered by time, and by id where times are equal: timers for one moment run in the
  // order of at().
  std::map<std::pair<Time, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, Time> timer_times_;  // the same timers by id, for cancel()
  std::uint64_t timer_last_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace tandem::actor
