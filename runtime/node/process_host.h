// A process host starts, signals, watches and reaps processes. It decides nothing: which processes
// run, and whether one is started again, is decided by the controller.
//
// Invariants
//   PH-1  on_exit is called exactly once for each spawned process, unless the host is destroyed
//         first; then never again.
//   PH-2  No process that a host started or adopted, and none of that process's group, outlives the
//         host: the destructor kills and reaps them. After a `kill -9` of the host's process each
//         child that called arm_parent_death_signal is killed by that signal; the others can be
//         adopted by another host.
//   PH-3  When the first process of a group ends, the other processes of the group are killed.
//   PH-4  A signal reaches only processes of the group it was meant for: it is sent while the
//         group's first process is not yet reaped, so a reused pid is never hit. For the group of
//         an adopted process see adopted_process.h.
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
#include "runtime/node/adopted_process.h"
#include "runtime/node/memory_kills.h"

namespace tandem::node {

using ProcessId = Id<struct ProcessTag>;  // within one host; never reused, unlike a pid; 0 = none

struct SpawnSpec {
  std::string name;               // for errors: "arith-1/rollout/0"
  std::vector<std::string> argv;  // argv[0] is looked up in PATH unless it holds a '/'
  // Added to the environment of this process, or in place of variables of the same name.
  std::vector<std::pair<std::string, std::string>> environment;
  // stdout and stderr are appended; directories are made. The process finds the path in
  // kLogVariable, and keeps the log within its limits (log_rotation.h).
  std::filesystem::path log_path;
  std::filesystem::path working_directory;  // empty: that of this process
  // The limit on open files is that which Tandem found (OF-1, open_files.h), not its own.
  bool users_program = false;
  // If not empty, the process reads the secret from the descriptor kSecretFd: unlike arguments and
  // environment, no list of processes shows it. It has at most kSecretBytesMax bytes (CHECKed).
  std::string secret;
};
inline constexpr int kSecretFd = 3;
// A pipe takes so many bytes without a reader, so that the host never waits for the process.
inline constexpr std::size_t kSecretBytesMax = 4096;

// How a process ended, and what it used. The times and the peak count the process and those of its
// children that it has waited for.
struct ExitStatus {
  std::optional<int> code;    // set if it exited by itself
  std::optional<int> signal;  // set if a signal ended it
  // Exactly one of the two is set; neither for an adopted process whose kernel does not tell.
  bool core_dumped = false;
  Duration user_time{};
  Duration system_time{};
  std::uint64_t memory_peak_bytes = 0;  // largest resident set
  // The resident set when the host last looked, which it does once a second; none: the process
  // ended before the first look.
  std::optional<std::uint64_t> memory_last_bytes;
  MemoryKill memory_kill = MemoryKill::kNone;  // set for a SIGKILL that this host did not send
};

// The status in words for people: "exited with code 3", "killed by signal 9 (Killed)", "… (core
// dumped)", "… for want of memory". The last one is said only where it is proven.
std::string describe(const ExitStatus& status);

struct SpawnedProcess {
  ProcessId id;
  pid_t pid = 0;
};

// Called on the host's own thread: post a message and return. Never call spawn() from it (CHECKed:
// it would wait for itself), and do not block, since no other process is watched meanwhile.
using ExitHandler = std::function<void(ProcessId, const ExitStatus&)>;

class ProcessHost {
 public:
  virtual ~ProcessHost() = default;

  // Starts a process that leads a process group of its own, reads /dev/null, inherits no descriptor
  // but the log's and a secret's, and has no signal blocked or ignored. Returns when the program
  // has been loaded. An unknown program, a log that cannot be written, or too many processes
  // (kInfeasible) is an error, and then no process is started.
  virtual Result<SpawnedProcess> spawn(SpawnSpec spec, ExitHandler on_exit) = 0;

  // Watches and ends a process from now on that a host which has died has started. Errors:
  // kNotFound where it has ended, or the pid is another's by now; another code where it may live
  // and cannot be watched yet.
  virtual Result<SpawnedProcess> adopt(pid_t pid, const ProcessBirth& born,
                                       ExitHandler on_exit) = 0;

  // Sends a signal to the whole group. Nothing happens where the process has ended or is unknown.
  virtual void signal(ProcessId process, int signal_number) = 0;

  // Sends SIGTERM to the group, and SIGKILL when `grace` has passed. After several calls the
  // earliest SIGKILL counts.
  virtual void stop(ProcessId process, Duration grace) = 0;
};

// The host of real processes; a simulation has another one. Any thread may call. One thread inside
// spawns all processes and runs until the host is destroyed, because a parent-death signal is sent
// when the thread that spawned ends, and not only when its process does. The destructor kills all
// processes and waits up to 5 s for their ends.
class PosixProcessHost : public ProcessHost {
 public:
  explicit PosixProcessHost(const MemoryKillSources& memory_kills = {});
  ~PosixProcessHost() override;

  Result<SpawnedProcess> spawn(SpawnSpec spec, ExitHandler on_exit) override;
  Result<SpawnedProcess> adopt(pid_t pid, const ProcessBirth& born, ExitHandler on_exit) override;
  void signal(ProcessId process, int signal_number) override;
  void stop(ProcessId process, Duration grace) override;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

// A spawned process calls this before anything else: from then on the kernel kills it (SIGKILL)
// when its parent ends. An error if the parent has ended already, that is, if getppid() is not
// `expected_parent`: the process should then exit.
Result<void> arm_parent_death_signal(pid_t expected_parent);

// The SpawnSpec::secret that this process was given; empty where it was given none. Closes
// kSecretFd: call it once, and before another file can have that number.
std::string inherited_secret();

}  // namespace tandem::node
