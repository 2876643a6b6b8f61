// How much CPU time and memory the process of a rank and its descendants (the programs of a reward)
// use at present, read from /proc. Those two figures are for people: no decision depends on them.
//
//   PU-1  The CPU use is the growth of each process's own time between two samples; a process that
//         ends, or a pid that a new process gets, never makes it negative.
//   PU-2  The first process counts as stopped only for time between samples that all found it
//         stopped, and for at most kSampleMax of the time between two: whoever samples may have
//         been stopped itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/clock.h"

namespace tandem::node {

struct ProcessUsage {
  double cpu_percent = 0;  // of one core, since the last sample; may exceed 100
  // The sum of the resident sets. Pages that processes share count for each of them.
  std::int64_t memory_bytes = 0;
  // For how long a signal (SIGSTOP, SIGTSTP) has stopped the first process, as far as was seen
  // (PU-2). A debugger that holds it does not count.
  Duration stopped{};
};

inline constexpr std::size_t kUsageProcessesMax = 256;  // per rank; more are not looked at

// A process, and behind it its descendants, each behind its parent; those whose parent has ended
// are not among them. `proc` is /proc but in a test.
std::vector<pid_t> family_of(pid_t first, const std::filesystem::path& proc = "/proc");

inline constexpr Duration kSampleMax = std::chrono::milliseconds(1500);

// Samples one process with its descendants. Used by one thread.
class UsageMeter {
 public:
  // `pid` is the first process; `proc` is /proc but in a test.
  explicit UsageMeter(pid_t pid, std::filesystem::path proc = "/proc")
      : pid_(pid), proc_(std::move(proc)) {}

  // The use since the last call. nullopt if the process has ended, and for the first sample, which
  // only starts the count.
  std::optional<ProcessUsage> sample(Time now);

 private:
  pid_t pid_;
  std::filesystem::path proc_;
  std::map<pid_t, std::uint64_t> ticks_;  // CPU time of each process at the last sample
  std::optional<Time> sampled_;           // when that was; none: never
  bool was_stopped_ = false;              // at the last sample
  Duration stopped_{};
};

}  // namespace tandem::node
