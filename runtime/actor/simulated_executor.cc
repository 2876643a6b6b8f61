// A discrete-event simulation. Runnable cells come before timers, and one message is run for each
// draw of the seed, so that a seed chooses among all the orders in which threads could handle the
// messages of different actors.
#include "runtime/actor/simulated_executor.h"

#include <algorithm>
#include <utility>

namespace tandem::actor {

TimerId SimulatedExecutor::at(Time when, std::function<void()> function) {
  const TimerId id{++timer_last_};
  timers_.emplace(std::pair(std::max(when, now_), id), std::move(function));
  timer_times_.emplace(id, std::max(when, now_));
  return id;
}

void SimulatedExecutor::cancel(TimerId timer) {
  const auto it = timer_times_.find(timer);
  if (it == timer_times_.end()) return;
  timers_.erase({it->second, timer});
  timer_times_.erase(it);
}

bool SimulatedExecutor::step() {
  ++steps_;
  if (!runnable_.empty()) {
    // The drawn cell is moved to the end, where taking it out costs nothing.
    std::swap(runnable_[rng_.below(runnable_.size())], runnable_.back());
    std::shared_ptr<Cell> cell = std::move(runnable_.back());
    runnable_.pop_back();
    if (cell->run(1)) runnable_.push_back(std::move(cell));
    return true;
  }
  if (timers_.empty()) return false;
  auto due = timers_.extract(timers_.begin());
  timer_times_.erase(due.key().second);
  now_ = std::max(now_, due.key().first);  // a handler may have taken more time than that
  // The timer is out of both maps before it runs: it may set timers and cancel itself.
  due.mapped()();
  return true;
}

bool SimulatedExecutor::run_until(const std::function<bool()>& done, Duration limit) {
  const Time end = now_ + limit;
  while (!done()) {
    if (runnable_.empty() && (timers_.empty() || timers_.begin()->first.first > end)) return false;
    step();
  }
  return true;
}

}  // namespace tandem::actor
