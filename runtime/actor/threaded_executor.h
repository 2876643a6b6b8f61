// Runs actors on a fixed number of threads with the machine's monotonic clock. Runnable actors take
// turns in one queue, and a due timer goes before any actor; any thread may run any actor, one
// thread at a time (XR-1). A handler that blocks takes one thread away from all actors.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/actor/executor.h"
#include "runtime/base/rng.h"

namespace tandem::actor {

class ThreadedExecutor final : public Executor {
 public:
  // kBegins: the thread begins to run an actor, or the function of a due timer. kHandled: that
  // actor has handled a message. kFree: the thread has ended that run.
  enum class Step { kBegins, kHandled, kFree };
  // Hears of each step on the thread that takes it. The threads are counted from 0.
  using OnTurn = std::function<void(int thread, Step step)>;

  // `seed` feeds the Rngs of the actors. These are for jitter only: threads do not repeat a run, so
  // work that must repeat takes seeds of its own (derive_seed).
  ThreadedExecutor(int threads, std::uint64_t seed, OnTurn on_turn = {});
  ~ThreadedExecutor() override;  // stop()

  // Lets running handlers finish, joins the threads, and drops the timers and the actors that wait
  // to run. A thread of this executor must not call it: it would join itself. A second call does
  // nothing.
  void stop();

  Time now() const override { return steady_now(); }
  void schedule(std::shared_ptr<Cell> cell) override;
  TimerId at(Time when, std::function<void()> function) override;
  void cancel(TimerId timer) override;
  std::uint64_t draw_seed() override;
  void handled() override;

 private:
  void work(int thread);  // runs on each thread, until stop()
  void tell(int thread, Step step) const {
    if (on_turn_) on_turn_(thread, step);
  }

  const OnTurn on_turn_;
  std::mutex mutex_;
  const std::shared_ptr<std::condition_variable> changed_ =
      std::make_shared<std::condition_variable>();
  // Guarded by mutex_. Timers are ordered by time, then by id; timer_times_ finds them for
  // cancel().
  std::deque<std::shared_ptr<Cell>> runnable_;
  std::map<std::pair<Time, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, Time> timer_times_;
  std::uint64_t timer_last_ = 0;
  int idle_ = 0;  // threads that wait for changed_
  bool stopping_ = false;
  Rng rng_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem::actor
