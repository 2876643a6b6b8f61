// The user's program that scores: its command line, the environment that it sees, its limits, and
// the watch over those limits that the kernel does not keep by itself. Processes and pipes are in
// line_child.h.
//
//   CE-1  A program sees PATH, HOME, LANG, LC_*, TZ and TMPDIR of ours, and what the job file gives
//         it by reward.env. It sees nothing else: no token, no key.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sandbox/layers.h"

namespace tandem::node {

struct ChildLimits {  // nullopt: no limit
  std::optional<std::uint64_t> open_files;
  std::optional<std::uint64_t> file_bytes;  // the size of each file that the program writes
  std::optional<double> cpu_seconds_per_line;
  std::optional<std::uint64_t> memory_bytes;  // resident, of the program without its own children
};

// `argv` is not empty. A variable in `env` replaces the inherited one of the same name. In a
// sandbox the kernel keeps the limits of its profile as well, those of files and open files among
// them.
struct ChildProgram {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  ChildLimits limits;
  std::optional<sandbox::Box> sandbox = {};  // nullopt: the program runs with our rights
};

// "NAME=value" for each variable that the program sees (CE-1). `ours` ends with a null pointer, as
// environ does.
std::vector<std::string> child_environment(const char* const* ours,
                                           const std::map<std::string, std::string>& added);

// The resources that a running program has used, without those of its own children.
struct ChildUsage {
  double cpu_seconds = 0;  // used by all threads since the program's start
  std::uint64_t resident_bytes = 0;
};
std::optional<ChildUsage> usage_of(pid_t pid);  // from /proc; nullopt: the process has ended

// Judges samples of a program's usage. The CPU time of a line counts from the first sample after a
// line went in or came out, so that a program may use any amount over all lines.
class UsageWatch {
 public:
  explicit UsageWatch(const ChildLimits& limits) : limits_(limits) {}

  bool wanted() const { return limits_.cpu_seconds_per_line || limits_.memory_bytes; }
  void line_passed() { line_passed_ = true; }
  // Why the program must be ended, as the end of a sentence; nullopt while it keeps its limits.
  std::optional<std::string> judge(const ChildUsage& usage);

 private:
  const ChildLimits limits_;
  bool line_passed_ = false;
  double cpu_seconds_before_ = 0;
};

}  // namespace tandem::node
