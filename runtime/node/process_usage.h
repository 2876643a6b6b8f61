// How much CPU time and memory a rank's process and its descendants (the programs of a reward) use
// now, read from /proc. The figures are for people: nothing is decided by them.
//
//   PU-1  The CPU use is the growth of each process's own time between two samples; a process that
//         ends, or a pid that a new process gets, never makes it negative.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>

#include "runtime/base/clock.h"

namespace tandem::runtime {

struct ProcessUsage {
  double cpu_percent = 0;  // of one core, since the last sample
  // The sum of the resident sets. Pages that processes share count for each of them.
  std::int64_t memory_bytes = 0;
};

inline constexpr std::size_t kUsageProcessesMax = 256;  // of one rank; more are not looked at

class UsageMeter {
 public:
  // `proc` is /proc but in a test.
  explicit UsageMeter(pid_t pid, std::filesystem::path proc = "/proc")
      : pid_(pid), proc_(std::move(proc)) {}

  // nullopt: the process is gone, or this is the first sample, which only starts the count.
  std::optional<ProcessUsage> sample(Time now);

 private:
  pid_t pid_;
  std::filesystem::path proc_;
  std::map<pid_t, std::uint64_t> ticks_;  // of CPU time at the last sample
  std::optional<Time> sampled_;
};

}  // namespace tandem::runtime
