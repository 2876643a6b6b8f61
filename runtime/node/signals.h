// Signals that a thread waits for, without handlers. The chosen signals are blocked
// in the thread that makes the object and in all threads that are started later, so that a process
// makes the object before its first thread. A blocked signal stays pending until a wait takes it.
// The mask is not restored when the object goes.
#pragma once

#include <sys/types.h>

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
  // The process that sent the signal of the last wait_for(); 0: one that cannot be seen from here.
  pid_t sender() const { return sender_; }
  void raise();  // from any thread: one wait returns SIGTERM

 private:
  sigset_t set_;
  pid_t sender_ = 0;
};

}  // namespace tandem::node
