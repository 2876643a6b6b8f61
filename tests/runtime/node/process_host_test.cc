// PH-1 to PH-3 with real processes: each end is told once, and no process outlives its host.
#include "runtime/node/process_host.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/base/file.h"

namespace tandem::node {
namespace {

// Collects exits; a test waits for the one that it needs.
class Exits {
 public:
  ExitHandler handler() {
    return [this](ProcessId id, const ExitStatus& status) {
      const std::lock_guard lock(mutex_);
      ++count_[id];
      last_[id] = status;
      changed_.notify_all();
    };
  }
  ExitStatus wait(ProcessId id) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::seconds(30), [&] { return last_.contains(id); });
    EXPECT_TRUE(came) << "process " << id.value << " never ended";
    return last_[id];
  }
  int count(ProcessId id) {
    const std::lock_guard lock(mutex_);
    return count_[id];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ProcessId, ExitStatus> last_;
  std::map<ProcessId, int> count_;
};

class ProcessHostTest : public testing::Test {
 protected:
  ProcessHostTest() {
    std::string pattern = testing::TempDir() + "process_host.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    fifo_ = directory_ / "fifo";
    EXPECT_EQ(::mkfifo(fifo_.c_str(), 0600), 0);
  }
  ~ProcessHostTest() override { std::filesystem::remove_all(directory_); }

  SpawnSpec spec(std::vector<std::string> argv) const {
    return {.name = "job/rollout/0",
            .argv = std::move(argv),
            .environment = {},
            .log_path = directory_ / "logs" / "process.log",
            .working_directory = {}};
  }
  SpawnSpec shell(const std::string& script) const {
    return spec({"sh", "-c", script, "sh", fifo_.string()});
  }
  std::string log() const { return read_file(directory_ / "logs" / "process.log").value(); }

  // Blocks until a process has opened the fifo for writing.
  OwnedFd open_fifo() const { return OwnedFd(::open(fifo_.c_str(), O_RDONLY | O_CLOEXEC)); }
  // The next byte, none once no process has the fifo open any more.
  static std::optional<char> next_byte(const OwnedFd& fifo) {
    char byte = 0;
    return ::read(fifo.get(), &byte, 1) == 1 ? std::optional(byte) : std::nullopt;
  }

  std::filesystem::path directory_;
  std::filesystem::path fifo_;
  Exits exits_;
};

TEST_F(ProcessHostTest, RunsAProgramWithItsLogEnvironmentAndDirectory) {
  PosixProcessHost host;
  SpawnSpec it = shell("pwd; echo $GREETING; echo oops >&2; exit 3");
  it.environment = {{"GREETING", "hello"}};
  it.working_directory = directory_;
  const SpawnedProcess process = host.spawn(it, exits_.handler()).value();
  const ExitStatus status = exits_.wait(process.id);
  EXPECT_EQ(status.code, 3);
  EXPECT_FALSE(status.signal);
  EXPECT_GT(status.memory_peak_bytes, 0u);
  EXPECT_EQ(describe(status), "exited with code 3");
  EXPECT_EQ(log(), std::filesystem::canonical(directory_).string() + "\nhello\noops\n");
}

TEST_F(ProcessHostTest, AppendsToALogThatIsThere) {
  PosixProcessHost host;
  exits_.wait(host.spawn(shell("echo one"), exits_.handler()).value().id);
  exits_.wait(host.spawn(shell("echo two"), exits_.handler()).value().id);
  EXPECT_EQ(log(), "one\ntwo\n");
}

TEST_F(ProcessHostTest, GivesTheChildNothingOfOurs) {
  const OwnedFd leaky(::open("/dev/null", O_RDONLY));  // not close-on-exec
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, nullptr);
  PosixProcessHost host;
  // Signals 1 to 31; the two above are the C library's own.
  const auto process = host.spawn(
      shell("grep SigBlk /proc/self/status; grep SigIgn /proc/self/status | tail -c 9; cat; "
            "[ -e /proc/$$/fd/" +
            std::to_string(leaky.get()) + " ] && echo leaked; ps -o pgid= -p $$ | tr -d ' '"),
      exits_.handler());
  ::pthread_sigmask(SIG_UNBLOCK, &term, nullptr);
  exits_.wait(process->id);
  const std::string text = log();
  const std::size_t second = text.find('\n') + 1;
  EXPECT_EQ(text.substr(0, second), "SigBlk:\t0000000000000000\n");
  EXPECT_EQ(std::stoul(text.substr(second, 8), nullptr, 16) & 0x7fffffffu, 0u);
  EXPECT_EQ(text.substr(second + 9), std::to_string(process->pid) + "\n");
}

TEST_F(ProcessHostTest, SaysWhatCannotBeStarted) {
  PosixProcessHost host;
  const auto absent = host.spawn(spec({"/no/such/program"}), exits_.handler());
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message, "cannot start job/rollout/0: No such file or directory");
  EXPECT_EQ(absent.error().where, "/no/such/program");

  SpawnSpec no_log = shell("exit 0");
  no_log.log_path = "/proc/no/such/place.log";
  const auto unwritable = host.spawn(no_log, exits_.handler());
  ASSERT_FALSE(unwritable);
  EXPECT_EQ(unwritable.error().where, "/proc/no/such/place.log");
}

TEST_F(ProcessHostTest, PH1EachExitIsToldOnceWhicheverThreadSpawned) {
  PosixProcessHost host;
  std::mutex mutex;
  std::map<ProcessId, int> expected;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 8; ++i) {
        const int code = thread * 8 + i;
        const auto process = host.spawn(shell("exit " + std::to_string(code)), exits_.handler());
        const std::lock_guard lock(mutex);
        expected[process->id] = code;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(expected.size(), 32u);  // no id twice
  for (const auto& [id, code] : expected) {
    EXPECT_EQ(exits_.wait(id).code, code);
    EXPECT_EQ(exits_.count(id), 1);
  }
}

TEST_F(ProcessHostTest, StopAsksFirstAndKillsAfterTheGrace) {
  PosixProcessHost host;
  const auto obedient = host.spawn(shell("exec sleep 1000"), exits_.handler());
  host.stop(obedient->id, std::chrono::hours(1));
  EXPECT_EQ(exits_.wait(obedient->id).signal, SIGTERM);

  const auto stubborn = host.spawn(shell("trap '' TERM; echo r > $1; while :; do sleep 1000; done"),
                                   exits_.handler());
  const OwnedFd fifo = open_fifo();
  EXPECT_EQ(next_byte(fifo), 'r');  // from here on it ignores SIGTERM
  host.stop(stubborn->id, std::chrono::hours(1));
  host.stop(stubborn->id, std::chrono::milliseconds(20));  // the earlier end counts
  const ExitStatus status = exits_.wait(stubborn->id);
  EXPECT_EQ(status.signal, SIGKILL);
  EXPECT_EQ(describe(status), "killed by signal 9 (Killed)");
}

TEST_F(ProcessHostTest, SignalsReachTheWholeGroupAndNobodyElse) {  // PH-4
  PosixProcessHost host;
  const auto other = host.spawn(shell("exec sleep 1000"), exits_.handler());
  const auto group = host.spawn(
      shell("trap 'wait; exit 5' USR1; "
            "sh -c 'trap \"echo child; exit\" USR1; echo r > $0; while :; do :; done' $1 & wait"),
      exits_.handler());
  const OwnedFd fifo = open_fifo();
  EXPECT_EQ(next_byte(fifo), 'r');
  host.signal(group->id, SIGUSR1);
  EXPECT_EQ(exits_.wait(group->id).code, 5);
  EXPECT_EQ(log(), "child\n");
  host.signal(group->id, SIGKILL);  // gone: no error, and no other process hit
  host.signal(ProcessId{999}, SIGKILL);
  EXPECT_EQ(exits_.count(other->id), 0);
  EXPECT_EQ(::kill(other->pid, 0), 0);
}

TEST_F(ProcessHostTest, PH3WhatALeaderLeavesBehindIsKilled) {
  PosixProcessHost host;
  const auto leader = host.spawn(shell("exec 3>$1; sleep 1000 & exit 0"), exits_.handler());
  const OwnedFd fifo = open_fifo();
  EXPECT_EQ(exits_.wait(leader->id).code, 0);
  EXPECT_EQ(next_byte(fifo), std::nullopt);  // ends only when `sleep` has ended
}

TEST_F(ProcessHostTest, PH2TheDestructorLeavesNoProcessAndNoZombie) {
  std::vector<SpawnedProcess> processes;
  OwnedFd fifo;
  {
    PosixProcessHost host;
    const std::string script = "trap '' TERM; exec 3>$1; sleep 1000 & sleep 1000";
    for (int i = 0; i < 3; ++i) processes.push_back(*host.spawn(shell(script), exits_.handler()));
    fifo = open_fifo();
  }
  EXPECT_EQ(next_byte(fifo), std::nullopt);
  for (const SpawnedProcess& process : processes) {
    EXPECT_EQ(::kill(process.pid, 0), -1) << "still there, at least as a zombie";
    EXPECT_EQ(exits_.count(process.id), 0) << "told after the host began to end";
  }
}

TEST_F(ProcessHostTest, PH2AKilledHostTakesItsArmedChildrenWithIt) {
  PosixProcessHost host;
  const auto inner =
      host.spawn(spec({"/proc/self/exe", "--inner-host", fifo_.string()}), exits_.handler());
  ASSERT_TRUE(inner) << render(inner.error());
  const OwnedFd fifo = open_fifo();
  EXPECT_EQ(next_byte(fifo), 'a');  // the grandchild is armed
  EXPECT_EQ(::kill(inner->pid, SIGKILL), 0);
  EXPECT_EQ(next_byte(fifo), std::nullopt);  // in a group of its own, yet gone
  EXPECT_EQ(exits_.wait(inner->id).signal, SIGKILL);
}

TEST_F(ProcessHostTest, ArmingFailsIfTheParentHasGone) {
  PosixProcessHost host;
  const auto process =
      host.spawn(spec({"/proc/self/exe", "--armed", "1", fifo_.string()}), exits_.handler());
  EXPECT_EQ(exits_.wait(process->id).code, 7);
}

// The roles of this program in the last tests: a process with a host of its own, and the child that
// it spawns.
int inner_host(const std::string& fifo) {
  PosixProcessHost host;
  const SpawnSpec spec{.name = "armed",
                       .argv = {"/proc/self/exe", "--armed", std::to_string(::getpid()), fifo},
                       .environment = {},
                       .log_path = "/dev/null",
                       .working_directory = {}};
  if (!host.spawn(spec, [](ProcessId, const ExitStatus&) {})) return 1;
  for (;;) ::pause();
}

int armed_child(pid_t expected_parent, const std::string& fifo) {
  if (!arm_parent_death_signal(expected_parent)) return 7;
  const int fd = ::open(fifo.c_str(), O_WRONLY);
  if (::write(fd, "a", 1) != 1) return 1;
  for (;;) ::pause();
}

// A cgroup made of files, whose count of kills for want of memory the test writes.
class MemoryKillOfAProcess : public ProcessHostTest {
 protected:
  MemoryKillOfAProcess() {
    put("cgroup", "0::/job\n");
    count(0);
  }
  void put(const std::filesystem::path& name, std::string_view text) const {
    std::filesystem::create_directories((directory_ / name).parent_path());
    EXPECT_TRUE(write_file(directory_ / name, std::as_bytes(std::span(text))));
  }
  void count(int kills) const {
    put("fs/job/memory.events", "oom 0\noom_kill " + std::to_string(kills) + "\n");
  }
  // A host looks as it spawns its first process, and then as often as this says.
  MemoryKillSources sources(Duration look_every = std::chrono::hours(1)) const {
    return {.own_cgroups = directory_ / "cgroup",
            .cgroup_mount = directory_ / "fs",
            .machine = directory_ / "vmstat",
            .look_every = look_every};
  }
  SpawnedProcess sleeper(PosixProcessHost& host) {
    return host.spawn(spec({"sleep", "1000"}), exits_.handler()).value();
  }
  // While this object exists the cgroup counts `kills`.
  ExitStatus kill_one(PosixProcessHost& host, int kills) {
    const SpawnedProcess process = sleeper(host);
    count(kills);
    EXPECT_EQ(::kill(process.pid, SIGKILL), 0);
    return exits_.wait(process.id);
  }
};

TEST_F(MemoryKillOfAProcess, IsASigkillOfAnothersThatTheCgroupCounted) {  // MK-1
  PosixProcessHost host(sources());
  EXPECT_EQ(kill_one(host, 0).memory_kill, MemoryKill::kNone) << "a plain kill -9";
  const ExitStatus counted = kill_one(host, 1);
  EXPECT_EQ(counted.memory_kill, MemoryKill::kProven);
  EXPECT_GT(counted.memory_peak_bytes, 0u);
  EXPECT_EQ(describe(counted), "killed by signal 9 (Killed) for want of memory");
  EXPECT_EQ(kill_one(host, 1).memory_kill, MemoryKill::kNone) << "counted once, explains one";
}

TEST_F(MemoryKillOfAProcess, IsNoKillOfOneThatLivedOnWhenItWasCounted) {  // MK-2
  PosixProcessHost host(sources(Duration{0}));
  const SpawnedProcess rank = sleeper(host);
  count(1);  // a reward program of the rank
  (void)sleeper(host);
  (void)sleeper(host);  // the host has looked since the one before
  EXPECT_EQ(::kill(rank.pid, SIGKILL), 0);
  EXPECT_EQ(exits_.wait(rank.id).memory_kill, MemoryKill::kNone);
}

TEST_F(MemoryKillOfAProcess, IsNoKillOfOurOwnAndNoOtherEnd) {
  PosixProcessHost host(sources());
  count(3);
  const auto stopped =
      host.spawn(shell("trap '' TERM; echo > \"$1\"; sleep 1000 & wait; wait"), exits_.handler());
  const OwnedFd fifo = open_fifo();
  ASSERT_EQ(next_byte(fifo), '\n') << "its trap is set";
  host.stop(stopped->id, Duration{0});
  const auto signalled = host.spawn(spec({"sleep", "1000"}), exits_.handler());
  host.signal(signalled->id, SIGKILL);
  const auto exited = host.spawn(shell("exit 1"), exits_.handler());
  for (const auto& process : {stopped, signalled, exited})
    EXPECT_EQ(exits_.wait(process->id).memory_kill, MemoryKill::kNone);
  EXPECT_EQ(kill_one(host, 4).memory_kill, MemoryKill::kProven) << "a later one is";
}

}  // namespace
}  // namespace tandem::node

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc == 3 && arguments[1] == "--inner-host") {
    return tandem::node::inner_host(arguments[2]);
  }
  if (argc == 4 && arguments[1] == "--armed") {
    return tandem::node::armed_child(std::stoi(arguments[2]), arguments[3]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
