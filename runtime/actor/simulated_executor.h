// Runs the same actors on one thread in virtual time, from one seed: which runnable actor is next,
// and every Rng, comes from the seed, so a run repeats exactly. Time advances only when nobody is
// runnable. A test drives it by run_until and friends; nothing here ever sleeps.
//
// Processes are simulated by giving each its own System on this executor; what travels between them
// goes through at() with a drawn delay (tests/… SimulatedNetwork).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "runtime/actor/executor.h"
#include "runtime/base/rng.h"

namespace tandem::runtime {

class SimulatedExecutor final : public Executor {
 public:
  explicit SimulatedExecutor(std::uint64_t seed) : rng_(seed) {}

  Time now() const override { return now_; }
  void schedule(std::shared_ptr<Cell> cell) override { runnable_.push_back(std::move(cell)); }
  TimerId at(Time when, std::function<void()> function) override;
  void cancel(TimerId timer) override;
  std::uint64_t draw_seed() override { return rng_.next(); }

  // Runs one thing: a turn of one runnable actor, else the earliest timer. False: nothing is left.
  bool step();
  // Steps until `done`, or until virtual time passes `limit` or nothing is left; returns done().
  bool run_until(const std::function<bool()>& done, Duration limit);

  Rng& rng() { return rng_; }
  std::uint64_t steps() const { return steps_; }

 private:
  Time now_{};
  Rng rng_;
  std::vector<std::shared_ptr<Cell>> runnable_;
  std::map<std::pair<Time, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, Time> timer_times_;
  std::uint64_t timer_last_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace tandem::runtime
