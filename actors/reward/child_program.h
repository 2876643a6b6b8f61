// The user's program that scores: its command line, the environment that it sees, its limits, and
// the watch over those limits that the kernel does not keep by itself. Not here: processes and
// pipes (line_child.h).
//
//   CE-1  A program sees PATH, HOME, LANG, LC_*, TZ and TMPDIR of ours, and what the job file gives
//         it by reward.env. Nothing else: no token, no key.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tandem::actors {

struct ChildLimits {  // nullopt: none
  std::optional<std::uint64_t> open_files;
  std::optional<std::uint64_t> file_bytes;  // of each file that it writes
  std::optional<double> cpu_seconds_per_line;
  std::optional<std::uint64_t> memory_bytes;  // resident, of the program without its own children
};

struct ChildProgram {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // beside, and before, what it sees of ours
  ChildLimits limits;
};

// "NAME=value" for each variable (CE-1). `ours` ends with a null, as environ does.
std::vector<std::string> child_environment(const char* const* ours,
                                           const std::map<std::string, std::string>& added);

struct ChildUsage {
  double cpu_seconds = 0;  // since its start, of all of its threads
  std::uint64_t resident_bytes = 0;
};
std::optional<ChildUsage> usage_of(pid_t pid);  // from /proc; nullopt: it is gone

// Judges samples of a program's usage. The CPU time of a line counts from the first sample after a
// line went in or came out.
class UsageWatch {
 public:
  explicit UsageWatch(const ChildLimits& limits) : limits_(limits) {}

  bool wanted() const { return limits_.cpu_seconds_per_line || limits_.memory_bytes; }
  void line_passed() { line_passed_ = true; }
  // Why the program must be ended; nullopt: it is within its limits.
  std::optional<std::string> judge(const ChildUsage& usage);

 private:
  const ChildLimits limits_;
  bool line_passed_ = false;
  double cpu_seconds_before_ = 0;
};

}  // namespace tandem::actors
