// A benchmark's further processes: its own executable, run again in other roles.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/node/process_host.h"

namespace tandem::bench {

inline constexpr Duration kPatience = std::chrono::seconds(30);  // ends a hang

// They end with this object, or with the process that has it.
class Children {
 public:
  // Spawns this executable `count` times with the arguments: ROLE, our pid, ROLE/INDEX,
  // `arguments`.
  void spawn(const std::string& role, int count, std::vector<std::string> arguments);

 private:
  node::PosixProcessHost host_;
};

// Called in a child with the parent's pid: the child ends when its parent does.
void die_with_parent(const char* parent_pid);

}  // namespace tandem::bench
