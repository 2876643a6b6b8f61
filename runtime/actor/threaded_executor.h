// Runs actors on a fixed number of threads with the machine's monotonic clock.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/actor/executor.h"
#include "runtime/base/rng.h"

namespace tandem::runtime {

class ThreadedExecutor final : public Executor {
 public:
  // `seed` feeds the actors' Rngs (jitter only: nothing that must repeat hangs on it).
  ThreadedExecutor(int threads, std::uint64_t seed);
  ~ThreadedExecutor() override;  // stop()

  // Lets running handlers finish, then joins; waiting messages and timers are dropped. From
  // outside.
  void stop();

  Time now() const override { return steady_now(); }
  void schedule(std::shared_ptr<Cell> cell) override;
  TimerId at(Time when, std::function<void()> function) override;
  void cancel(TimerId timer) override;
  std::uint64_t draw_seed() override;

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::shared_ptr<Cell>> runnable_;
  std::map<std::pair<Time, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, Time> timer_times_;
  std::uint64_t timer_last_ = 0;
  int idle_ = 0;
  bool stopping_ = false;
  Rng rng_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem::runtime
