// Signals that a thread waits for, without handlers. The chosen signals, and SIGTERM, are blocked
// in the thread that makes the object and in all threads that are started later, so that a process
// makes the object before its first thread. A blocked signal stays pending until a wait takes it.
// The mask is not restored when the object goes.
#pragma once

#include <csignal>
#include <initializer_list>

#include "runtime/base/clock.h"

namespace tandem::node {

class Signals {
 public:
  explicit Signals(std::initializer_list<int> chosen);

  int wait();  // the number of the next signal; waits without a limit
  // The number of the next signal within `timeout`, else 0.
  int wait_for(Duration timeout);
  void raise();  // from any thread: one wait returns SIGTERM

 private:
  sigset_t set_;
};

}  // namespace tandem::node
