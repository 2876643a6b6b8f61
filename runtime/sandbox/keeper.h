// The first process of a sandbox, between the fork and the program: it makes the namespaces' file
// system, starts the program with the limits on, waits for its end, and takes all other processes
// of the sandbox with it. It is a copy of a process with threads, so everything here is made before
// the fork and nothing allocates, locks or calls into the library's own records of threads.
//
//   XB-2  When the keeper has ended, no process of the sandbox is left.
//   XB-3  The keeper holds no descriptor of ours while the program runs, and the program cannot
//         read its memory, which is a copy of ours.
#pragma once

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sandbox/landlock.h"
#include "runtime/sandbox/layers.h"
#include "runtime/sandbox/tree.h"

namespace tandem::sandbox {

// The step of a start that failed. The names are for people.
enum class Step : std::int32_t {
  kNone,
  kGroup,
  kUserMap,
  kRoot,
  kScratch,
  kTree,
  kView,
  kProc,
  kLeave,
  kFork,
  kLimit,
  kUid,
  kPrivileges,
  kLandlock,
  kSeccomp,
  kFolder,
  kExecute,
};
constexpr auto enum_names(Step) {
  using enum Step;
  return enum_name_rows<Step>({{kNone, "nothing"},
                               {kGroup, "joining the cgroup"},
                               {kUserMap, "mapping the user"},
                               {kRoot, "making a root file system"},
                               {kScratch, "making the scratch folder"},
                               {kTree, "making the folders"},
                               {kView, "making a read-only view"},
                               {kProc, "mounting /proc"},
                               {kLeave, "leaving the old root"},
                               {kFork, "starting a process"},
                               {kLimit, "setting a limit"},
                               {kUid, "changing the uid"},
                               {kPrivileges, "giving up privileges"},
                               {kLandlock, "Landlock"},
                               {kSeccomp, "seccomp"},
                               {kFolder, "entering the scratch folder"},
                               {kExecute, "executing the program"}});
}

// Written to the pipe `failure`, once, by a start that fails; one that succeeds closes it.
struct StartFailure {
  Step step = Step::kNone;
  std::int32_t error = 0;  // errno
};

// What the keeper leaves behind, in memory that it shares with us.
struct Record {
  bool ended = false;                   // the program has; false: the keeper was killed first
  int status = 0;                       // of the program, as waitpid() gives it
  double cpu_seconds = 0;               // of the program and of the children that it waited for
  std::uint64_t memory_bytes_peak = 0;  // resident, of the largest process
};

// The uids of which a sandbox gets one: that of its keeper's pid, which no other sandbox has at
// that time.
struct UidRange {
  uid_t first = 0;
  std::uint32_t count = 1;
};

struct Limit {
  decltype(RLIMIT_CPU) resource;
  rlimit value;
};

struct Keeping {
  Plan plan;
  // of the program
  const char* path = nullptr;
  int executable = -1;  // a file that is executed in place of `path`; -1: none
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  int input = -1, output = -1, errors = -1;
  const char* folder = nullptr;  // the working folder, the scratch folder
  std::optional<UidRange> uids;  // nullopt: the program has the uid of this process
  std::vector<Limit> limits;
  std::vector<sock_filter> filter;  // empty: seccomp is not used
  LandlockRules landlock;           // abi 0: not used
  // of the keeper
  int failure_write = -1, failure_read = -1;  // both ends: the keeper closes its copy of the latter
  std::vector<int> groups;                    // open cgroup.procs files
  std::string user_map, group_map;            // for a user namespace
  Tree tree;                                  // for a mount namespace
  std::string scratch_options;                // of its tmpfs
  Record* record = nullptr;                   // shared memory
  uid_t uid = 0;                              // the one of `uids`; the keeper sets it
};

// Starts the keeper. Like fork(), it returns a pid, or -1 with errno. The calling thread must
// outlive the sandbox, since the kernel takes its end for the end of this process.
pid_t start_keeper(Keeping& keeping);

}  // namespace tandem::sandbox
