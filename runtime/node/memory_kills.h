// Whether the kernel killed a process for want of memory. Such an end is a SIGKILL like any other,
// but the kernel counts these kills per cgroup; the count tells them from a plain `kill -9`.
//
//   MK-1  A kill that the kernel counted explains the end of one process at most, and only within
//         kMemoryKillWindow after its count was first seen.
//   MK-2  Such a kill does not explain the end of a process that still ran after its count had been
//         seen: the kernel killed another process, such as a reward program of that process, and
//         the sender of the later SIGKILL is not known.
//
// The counts are in memory.events (cgroups of version 2) or memory.oom_control (version 1) of the
// nearest level that can be read. /proc/vmstat counts for the whole machine, where the process that
// was killed may belong to anybody: that count is a hint and never a proof.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>

#include "runtime/base/clock.h"

namespace tandem::node {

enum class MemoryKill {
  kNone,  // no sign of a kill for want of memory
  // The kernel counted a kill in the cgroup of this process, to which its children belong.
  kProven,
  // A kill was counted somewhere on this machine, and the count of our own cgroup cannot be read.
  kHinted,
};

// The files in which the kernel counts; a test names files of its own.
struct MemoryKillSources {
  std::filesystem::path own_cgroups = "/proc/self/cgroup";
  std::filesystem::path cgroup_mount = "/sys/fs/cgroup";
  std::filesystem::path machine = "/proc/vmstat";
  // How often ProcessHost reads the counts while it has processes.
  Duration look_every = std::chrono::seconds(1);
};

// Kills since the boot of the machine, or since the cgroup was made; none where a count cannot be
// read.
struct MemoryKillCounts {
  std::optional<std::uint64_t> own;
  std::optional<std::uint64_t> machine;
};
MemoryKillCounts read_memory_kills(const MemoryKillSources& sources);

// Asks the kernel to kill this process, if memory runs out, before any that has the usual score.
// Ranks call this, so that the kernel takes a rank rather than the controller, which starts ranks
// again. Nothing happens where the kernel cannot be asked.
void die_first_for_memory();

// The resident memory of a process; none if it has ended, or has given its memory back at its end.
std::optional<std::uint64_t> resident_bytes(pid_t pid);

// Whether a SIGKILL is pending for a process; true also where that cannot be told. The kernel sends
// the signal when it counts the kill: a process that has memory and no pending SIGKILL after a
// count was read is not the one that this count stands for (MK-2).
bool kill_may_be_pending(pid_t pid);

// MK-1. A process of many gibibytes takes seconds to end after the kernel has counted its kill.
inline constexpr Duration kMemoryKillWindow = std::chrono::seconds(30);

// Matches ends of processes with rises of the counts. Reads nothing by itself: the caller passes
// the counts and the time. Used by one thread.
class MemoryKillWatch {
 public:
  // Kills that were counted before, when no process was watched, explain no end.
  explicit MemoryKillWatch(const MemoryKillCounts& before);

  // The counts were read at `now`.
  void note(const MemoryKillCounts& counted, Time now);
  // A process has ended by a SIGKILL that this process did not send. `lived_on` is the last time at
  // which it is known to have run with no SIGKILL pending; at least the time of its start. A kill
  // that explains the end is used up.
  MemoryKill claim(Time now, Time lived_on);

 private:
  struct Counter {
    std::optional<std::uint64_t> seen;  // the count when it was read last
    std::deque<Time> unexplained;  // when each rise that explains no end yet was seen; ascending
  };
  static void note(Counter& counter, std::optional<std::uint64_t> counted, Time now);
  static bool take(Counter& counter, Time now, Time lived_on);

  Counter own_;
  Counter machine_;
};

}  // namespace tandem::node
