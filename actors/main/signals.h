// Signals as an answer to wait(): the chosen ones are blocked in the thread that makes the object
// and in all threads started later, so make it first. No handler runs anywhere.
#pragma once

#include <csignal>
#include <initializer_list>

#include "runtime/base/clock.h"

namespace tandem::cli {

class Signals {
 public:
  explicit Signals(std::initializer_list<int> chosen);

  int wait();  // the next one
  // The next one within `timeout`, else 0.
  int wait_for(Duration timeout);
  void raise();  // from any thread: lets one wait() return SIGTERM

 private:
  sigset_t set_;
};

}  // namespace tandem::cli
