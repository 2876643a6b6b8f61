// Writes to a run's files that wait for room on the disk. A write that finds the disk full waits,
// and every later one behind it, so that files have their lines in order. Their number is bounded
// by the work that is under way: a run that stands still gives out no more. Used by one thread.
// Measures how long writes take.
#pragma once

#include <deque>
#include <functional>
#include <optional>

#include "runtime/actor/context.h"
#include "runtime/base/clock.h"
#include "runtime/base/recent_max.h"
#include "runtime/base/result.h"

namespace tandem::exchange {

class WaitingWrites {
 public:
  using Write = std::function<Result<void>()>;
  // Hears how the write has ended, once. It may add further writes.
  using Then = std::function<void(actor::Context&, const Result<void>&)>;

  void add(actor::Context& cx, const Write& write, const Then& then);
  // Tries those that wait, up to the first that still finds the disk full.
  void retry(actor::Context& cx);
  // Those that wait end with the error that made them wait, and none waits from now on.
  void give_up(actor::Context& cx);

  bool any() const { return !waiting_.empty(); }
  // Both are those of the first write, while one waits.
  const Error& error() const { return error_; }
  Time since() const { return since_; }
  // The seconds of the slowest write of the newest minute or two; 0 without any.
  double slowest_s(Time now) const { return seconds_.most(now); }

 private:
  struct Waiting {
    Write write;
    Then then;
  };

  Result<void> tried(actor::Context& cx, const Write& write);

  std::deque<Waiting> waiting_;
  Error error_;
  Time since_{};
  RecentMax seconds_;  // of writes
  bool gave_up_ = false;
};

}  // namespace tandem::exchange
