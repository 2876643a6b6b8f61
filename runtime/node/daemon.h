// Processes that outlive the one that starts them: starting one, hearing from it, and waiting for
// the end of a process that somebody else reaps.
//
// A word is a byte on a socket that a daemon inherits, so that waiting for it needs neither a poll
// nor a file, and a daemon that ends early is heard as the end of the socket. What a word means is
// agreed between the two. Not here: rank processes, which end with their host (process_host.h).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem::runtime {

struct DaemonSpec {
  std::string name;  // for errors: "the controller"
  std::filesystem::path program;
  std::vector<std::string> argv;  // argv[0] is what ps shows
  std::filesystem::path log;      // its output and errors are appended
};
struct Daemon {
  pid_t pid = 0;
  OwnedFd words;
};

// In a session of its own, reading /dev/null.
Result<Daemon> spawn_daemon(DaemonSpec spec);

enum class Heard { kWord, kEnd, kNothing };

// The next word of `speaker`; kEnd if it or `other` ends first, kNothing if the time does.
Heard wait_for_word(const Daemon& speaker, const Daemon& other, Duration timeout);

// A daemon's side. A process that nobody waits for may say its words as well.
class DaemonWords {
 public:
  // Takes the socket out of what this process hands on: call it before threads and children exist.
  static DaemonWords inherited();
  void say() const;  // from any thread

 private:
  OwnedFd socket_;
};

// The end of a process that is not ours to reap. It is found by its pid once, when this is made:
// whoever has the number later is not mistaken for it.
class ProcessEnd {
 public:
  explicit ProcessEnd(pid_t pid);
  bool wait_until(Time deadline) const;  // whether it has ended; a zombie has

 private:
  OwnedFd pidfd_;  // none: there is no such process
};

}  // namespace tandem::runtime
