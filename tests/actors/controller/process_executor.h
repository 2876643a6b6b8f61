// The executor of one simulated process, over the executor of the whole simulation. It gives the
// process what a process of a real machine may meet: it is stopped and goes on later (SIGSTOP, a
// machine that swaps, a disk that lets it wait), or its clock jumps.
//
//   PX-1  A process that is stopped handles no message and no timer. What came due meanwhile is
//         handled once it goes on.
//
// One thread. Timers outlive the ProcessExecutor without harm: they hold its state weakly.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime/actor/executor.h"
#include "runtime/actor/simulated_executor.h"

namespace tandem::controller {

class ProcessExecutor final : public actor::Executor {
 public:
  explicit ProcessExecutor(actor::SimulatedExecutor& simulation);

  Time now() const override;
  void schedule(std::shared_ptr<actor::Cell> cell) override;
  actor::TimerId at(Time when, std::function<void()> function) override;
  void cancel(actor::TimerId timer) override;
  std::uint64_t draw_seed() override { return simulation_.draw_seed(); }

  // Stops count: the process goes on after as many calls of go_on().
  void stop();
  void go_on();
  bool stopped() const;
  // The process is gone: what still waits is dropped. What waits may hold the process itself, so
  // that without this neither would ever be freed.
  void end();
  // The process's clock is so much later from now on; timers of that time are due at once.
  void jump(Duration forward);
  // Grows with each message and turn that the process has handled.
  std::uint64_t messages_handled() const;

 private:
  struct Timer {
    Time when;  // by the process's clock
    actor::TimerId in_simulation;
    std::function<void()> function;
  };
  class Gate;
  struct State {
    int stops = 0;
    Duration offset{};
    std::uint64_t handled = 0;
    std::uint64_t timer_last = 0;
    std::map<actor::TimerId, Timer> timers;
    std::set<actor::TimerId> due;  // timers that came due while the process was stopped
    std::vector<std::shared_ptr<actor::Cell>> runnable;  // cells that wait for it to go on
  };
  void set(actor::TimerId id);  // the simulation's timer

  actor::SimulatedExecutor& simulation_;
  const std::shared_ptr<State> state_;
};

}  // namespace tandem::controller
