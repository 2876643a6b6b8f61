#include "tests/actors/controller/process_executor.h"

#include <utility>

#include "runtime/base/check.h"

namespace tandem::controller {

using actor::TimerId;

// A cell as the simulation has it: it runs while its process does, and waits in State::runnable
// else.
class ProcessExecutor::Gate final : public actor::Cell {
 public:
  Gate(std::shared_ptr<actor::Cell> cell, std::shared_ptr<State> state)
      : cell_(std::move(cell)), state_(std::move(state)) {}
  bool run(int messages_max) override {
    if (state_->stops > 0) {
      state_->runnable.push_back(cell_);
      return false;
    }
    ++state_->handled;
    return cell_->run(messages_max);
  }

 private:
  const std::shared_ptr<actor::Cell> cell_;
  const std::shared_ptr<State> state_;
};

ProcessExecutor::ProcessExecutor(actor::SimulatedExecutor& simulation)
    : simulation_(simulation), state_(std::make_shared<State>()) {}

Time ProcessExecutor::now() const { return simulation_.now() + state_->offset; }

void ProcessExecutor::schedule(std::shared_ptr<actor::Cell> cell) {
  if (state_->stops > 0)
    state_->runnable.push_back(std::move(cell));
  else
    simulation_.schedule(std::make_shared<Gate>(std::move(cell), state_));
}

TimerId ProcessExecutor::at(Time when, std::function<void()> function) {
  const TimerId id{++state_->timer_last};
  state_->timers.emplace(id, Timer{when, {}, std::move(function)});
  set(id);
  return id;
}

void ProcessExecutor::set(TimerId id) {
  Timer& timer = state_->timers.at(id);
  timer.in_simulation = simulation_.at(Time{timer.when.ns - state_->offset.count()},
                                       [weak = std::weak_ptr(state_), id] {
                                         const auto state = weak.lock();
                                         if (!state) return;
                                         if (state->stops > 0) return void(state->due.insert(id));
                                         const auto due = state->timers.extract(id);
                                         if (due) due.mapped().function();
                                       });
}

void ProcessExecutor::cancel(TimerId timer) {
  const auto found = state_->timers.extract(timer);
  if (!found) return;
  state_->due.erase(timer);
  simulation_.cancel(found.mapped().in_simulation);
}

void ProcessExecutor::stop() { ++state_->stops; }

void ProcessExecutor::go_on() {
  CHECK(state_->stops > 0);
  if (--state_->stops > 0) return;
  for (auto& cell : std::exchange(state_->runnable, {})) schedule(std::move(cell));
  for (const TimerId id : std::exchange(state_->due, {})) set(id);
}

void ProcessExecutor::end() {
  state_->due.clear();
  for (const auto& [id, timer] : std::exchange(state_->timers, {}))
    simulation_.cancel(timer.in_simulation);
  std::exchange(state_->runnable, {}).clear();
}

bool ProcessExecutor::stopped() const { return state_->stops > 0; }

void ProcessExecutor::jump(Duration forward) {
  state_->offset += forward;
  for (auto& [id, timer] : state_->timers) {
    simulation_.cancel(timer.in_simulation);
    if (!state_->due.contains(id)) set(id);
  }
}

std::uint64_t ProcessExecutor::messages_handled() const { return state_->handled; }

}  // namespace tandem::controller
