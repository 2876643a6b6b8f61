// A child that is a copy of this process and does its work, while this process does nothing but
// watch it: whether it lives, and whether the thread that should show a pulse still does. So a hang
// is seen, also one of all threads at once, as by SIGSTOP.
//
//   WC-1  The child is killed when this process ends, however it ends.
//   WC-2  A pulse that rests is never missed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/result.h"

namespace tandem::node {

// The sign of life in memory that both processes share. Used by one thread of the child.
class Pulse {
 public:
  Pulse() = default;  // nobody watches
  void beat();
  void rest();  // no beat is due before the next one

 private:
  friend class WatchedChild;
  struct Shared;
  explicit Pulse(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<Shared> shared_;
};

class WatchedChild {
 public:
  using Work = std::function<int(Pulse)>;  // returns the exit code

  // Forks, so that this process must have one thread. Does not return in the child, which exits
  // with what `work` returns. An error: there is no child.
  static Result<WatchedChild> start(const Work& work);

  pid_t pid() const { return pid_; }
  void signal(int number) const;  // not after ended()
  // The status of waitpid() where it has ended.
  std::optional<int> ended() const;
  // To be called at a steady pace: the calls in a row that have found no beat. A watcher that is
  // stopped itself counts none.
  int missed();

 private:
  WatchedChild(pid_t pid, Pulse pulse) : pid_(pid), pulse_(std::move(pulse)) {}

  pid_t pid_;
  Pulse pulse_;
  std::uint64_t beats_ = 0;
  int missed_ = 0;
};

}  // namespace tandem::node
