// Whether a process stands still, as by SIGSTOP: it cannot say so itself, and its sockets stay
// open. A process that a debugger holds does not count.
#pragma once

#include <sys/types.h>

#include "runtime/base/clock.h"

namespace tandem::node {

// What stands still for so long hangs.
inline constexpr Duration kStoppedMax = std::chrono::milliseconds(2500);

// By /proc; false where there is no such process.
bool is_stopped(pid_t pid);

// Looks at one process at a steady pace. It counts looks and not time, so that a watcher that was
// stopped itself, as by a suspended machine, takes nothing for a hang.
class StopWatch {
 public:
  explicit StopWatch(Duration pace) : looks_max_((kStoppedMax + pace - Duration{1}) / pace) {}

  // True: the process has stood still for kStoppedMax.
  bool look(pid_t pid) {
    looks_ = is_stopped(pid) ? looks_ + 1 : 0;
    return looks_ >= looks_max_;
  }

 private:
  std::int64_t looks_max_, looks_ = 0;
};

}  // namespace tandem::node
