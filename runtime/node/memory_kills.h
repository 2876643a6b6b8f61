// Whether the kernel killed a process for want of memory. The end itself is a SIGKILL like any
// other; the kernel counts such kills per cgroup, so the count tells them from a plain `kill -9`.
//
//   MK-1  A kill that the kernel counted explains the end of one process at most, and only within
//         kMemoryKillWindow after its count was first seen.
//   MK-2  It does not explain the end of a process that lived on when its count had been seen: the
//         kernel killed another, such as a reward program of that process, and who sent the later
//         SIGKILL is not known.
//
// Version 2 counts in memory.events, version 1 in memory.oom_control, both of the nearest level
// that can be read. /proc/vmstat counts for the whole machine, where the process killed may be a
// stranger: it is a hint and never a proof.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>

#include "runtime/base/clock.h"

namespace tandem::runtime {

enum class MemoryKill {
  kNone,    // no sign of one
  kProven,  // the kernel counted one in the cgroup of this process, to which its children belong
  kHinted,  // one was counted somewhere on this machine, and our own cgroup's count is not to be
            // had
};

// Where the kernel counts; a test points them at files of its own.
struct MemoryKillSources {
  std::filesystem::path own_cgroups = "/proc/self/cgroup";
  std::filesystem::path cgroup_mount = "/sys/fs/cgroup";
  std::filesystem::path machine = "/proc/vmstat";
  Duration look_every = std::chrono::seconds(1);
};

struct MemoryKillCounts {  // since the boot, or since the cgroup was made
  std::optional<std::uint64_t> own;
  std::optional<std::uint64_t> machine;
};
MemoryKillCounts read_memory_kills(const MemoryKillSources& sources);

// From now on the kernel, where memory runs out, kills this process before any that has the usual
// score: an actor's rank rather than the controller, which starts ranks again. Where it cannot be
// asked for that, nothing happens.
void die_first_for_memory();

// The resident memory of a process; none once it is gone.
std::optional<std::uint64_t> resident_bytes(pid_t pid);

// Whether a SIGKILL is on its way to a process, or that cannot be told. The kernel sends it as it
// counts, so a process of which neither is so, and which has memory, was not the one it killed.
bool kill_may_be_pending(pid_t pid);

// A process of many gibibytes takes seconds to end after the kernel counted its kill.
inline constexpr Duration kMemoryKillWindow = std::chrono::seconds(30);

class MemoryKillWatch {
 public:
  // What was counted before anybody could be watched explains nothing.
  explicit MemoryKillWatch(const MemoryKillCounts& before);

  void note(const MemoryKillCounts& counted, Time now);
  // A process ended by a SIGKILL that we did not send. `lived_on`: when it was last seen to, at the
  // latest as it was started.
  MemoryKill claim(Time now, Time lived_on);

 private:
  struct Counter {
    std::optional<std::uint64_t> seen;
    std::deque<Time> unexplained;  // when each rise was seen
  };
  static void note(Counter& counter, std::optional<std::uint64_t> counted, Time now);
  static bool take(Counter& counter, Time now, Time lived_on);

  Counter own_;
  Counter machine_;
};

}  // namespace tandem::runtime
