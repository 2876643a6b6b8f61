// The processor cores that a fleet on one machine shares. As long as the threads that work are more
// than there are cores, all of them are as much slower. Fleets with devices of their own have none
// of this (cores 0: the slowdown is always 1). Used by the one thread of the simulated executor.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace tandem::forecast {

class HostLoad {
 public:
  explicit HostLoad(double cores) : cores_(cores) {}

  // `changed` is called when the slowdown has changed, but not within the call that changed it by
  // the actor itself. Until leave(), which the actor's end needs.
  void join(const std::string& actor, std::function<void()> changed);
  void leave(const std::string& actor);
  // The actor works with so many threads from now on; 0: it waits.
  void work(const std::string& actor, double threads);
  double slowdown() const;

 private:
  struct Member {
    double threads = 0;
    std::function<void()> changed;
  };
  const double cores_;
  double working_ = 0;  // threads
  std::map<std::string, Member> members_;
};

}  // namespace tandem::forecast
