// Starts, signals, watches and reaps processes. It decides nothing: what should run, and whether a
// dead one comes back, is the agent's and the controller's.
//
// Invariants
//   PH-1  on_exit is called exactly once for each spawned process, unless the host is destroyed
//         first; then never again.
//   PH-2  No process that a host started, and none of that process's group, outlives the host: the
//         destructor kills and reaps them, and after a `kill -9` of the host's process each child
//         dies by its parent-death signal (if it called arm_parent_death_signal).
//   PH-3  When the first process of a group ends, what is left of its group is killed.
//   PH-4  A signal reaches only processes of the group it was meant for: it is sent while the
//         group's first process is not yet reaped, so a reused pid is never hit.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/node/memory_kills.h"

namespace tandem::runtime {

using ProcessId = Id<struct ProcessTag>;  // within one host; never reused, unlike a pid; 0 = none

struct SpawnSpec {
  std::string name;               // for errors: "arith-1/rollout/0"
  std::vector<std::string> argv;  // argv[0] is looked up in PATH unless it holds a '/'
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours, or replacing
  std::filesystem::path log_path;           // stdout and stderr are appended; folders are made
  std::filesystem::path working_directory;  // empty: ours
  // Not empty: the process reads it from kSecretFd, where no list of processes shows it. At most
  // kSecretBytesMax.
  std::string secret;
};
inline constexpr int kSecretFd = 3;
inline constexpr std::size_t kSecretBytesMax = 4096;  // what a pipe takes without a reader

struct ExitStatus {
  std::optional<int> code;    // set if it exited by itself
  std::optional<int> signal;  // set if a signal ended it; exactly one of the two is set
  bool core_dumped = false;
  Duration user_time{};
  Duration system_time{};
  std::uint64_t memory_peak_bytes = 0;  // largest resident set
  // Resident when it was last looked at, which happens once a second; none: it ended before.
  std::optional<std::uint64_t> memory_last_bytes;
  MemoryKill memory_kill = MemoryKill::kNone;  // of a SIGKILL that this host did not send
};

// "exited with code 3", "killed by signal 9 (Killed)", "… (core dumped)", "… for want of memory".
std::string describe(const ExitStatus& status);

struct SpawnedProcess {
  ProcessId id;
  pid_t pid = 0;
};

// Called on the host's own thread: post a message and return; never call the host from it.
using ExitHandler = std::function<void(ProcessId, const ExitStatus&)>;

class ProcessHost {
 public:
  virtual ~ProcessHost() = default;

  // Each process leads a process group of its own, reads /dev/null, has no other descriptor of
  // ours but a secret's, no signal blocked or ignored. Returns once the program has been loaded; an
  // unknown program, an unwritable log, or too many processes is an error and starts nothing.
  virtual Result<SpawnedProcess> spawn(SpawnSpec spec, ExitHandler on_exit) = 0;

  // To the whole group. A process that is gone, or unknown, is not an error.
  virtual void signal(ProcessId process, int signal_number) = 0;

  // SIGTERM to the group, then SIGKILL once `grace` has passed. Of two calls the earlier end
  // counts.
  virtual void stop(ProcessId process, Duration grace) = 0;
};

// Real processes. Any thread may call; one thread inside spawns all of them and lives as long as
// the host, because a parent-death signal fires when the *thread* that spawned ends.
class PosixProcessHost : public ProcessHost {
 public:
  explicit PosixProcessHost(const MemoryKillSources& memory_kills = {});
  ~PosixProcessHost() override;

  Result<SpawnedProcess> spawn(SpawnSpec spec, ExitHandler on_exit) override;
  void signal(ProcessId process, int signal_number) override;
  void stop(ProcessId process, Duration grace) override;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

// A spawned process calls this before anything else: the kernel will kill it (SIGKILL) when its
// parent goes. Fails if the parent is already gone, that is, getppid() is not `expected_parent`.
Result<void> arm_parent_death_signal(pid_t expected_parent);

// What a process was given as SpawnSpec::secret; once. Empty where it was given none.
std::string inherited_secret();

}  // namespace tandem::runtime
