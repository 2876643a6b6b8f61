// PH-1 to PH-4 for processes whose parent has died: a shell starts them, and ends.
#include "runtime/node/adopted_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "runtime/node/process_host.h"

namespace tandem::node {
namespace {

constexpr auto kOrphanPatience = std::chrono::seconds(60);  // ends a hang; never measured

class Orphans : public testing::Test {
 protected:
  Orphans() {
    std::string pattern = testing::TempDir() + "orphans.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    fifo_ = folder_ / "fifo";
    held_ = folder_ / "held";
    EXPECT_EQ(::mkfifo(fifo_.c_str(), 0600), 0);
    EXPECT_EQ(::mkfifo(held_.c_str(), 0600), 0);
    reader_ = OwnedFd(::open(held_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  ~Orphans() override { std::filesystem::remove_all(folder_); }

  // The pid of a process that runs `script` in a group of its own, and whose parent has ended. The
  // process holds the file held_ open when it runs `script`, which says its pid (echo $$).
  pid_t orphan(const std::string& script) const {
    const std::string command =
        "setsid sh -c 'exec 9> " + held_.string() + "; " + script + "' > " + fifo_.string() + " &";
    const pid_t shell = ::fork();
    if (shell == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    std::ifstream out(fifo_);
    pid_t pid = 0;
    out >> pid;
    ::waitpid(shell, nullptr, 0);
    EXPECT_GT(pid, 1);
    return pid;
  }
  Result<SpawnedProcess> adopt(PosixProcessHost& host, pid_t pid) {
    return host.adopt(pid, birth_of(pid).value_or(ProcessBirth{}),
                      [this](ProcessId, const ExitStatus& status) { ended_.set_value(status); });
  }
  ExitStatus wait() {
    auto ended = ended_.get_future();
    EXPECT_EQ(ended.wait_for(kOrphanPatience), std::future_status::ready);
    return ended.get();
  }
  // Waits until no process holds the file open any more.
  bool let_go() const {
    ::fcntl(reader_.get(), F_SETFL, 0);
    char byte = 0;
    return ::read(reader_.get(), &byte, 1) == 0;
  }

  std::filesystem::path folder_, fifo_, held_;
  OwnedFd reader_;
  std::promise<ExitStatus> ended_;
};

TEST_F(Orphans, TheEndOfOneIsSeen) {
  PosixProcessHost host;
  const std::filesystem::path go = folder_ / "go";
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  const pid_t pid = orphan("echo $$; read line < " + go.string() + "; exit 3");
  ASSERT_TRUE(adopt(host, pid));
  std::ofstream(go) << "go\n";
  const ExitStatus status = wait();
  EXPECT_FALSE(status.signal);
  EXPECT_EQ(status.code.value_or(3), 3) << "kernels before 6.15 do not tell";
  EXPECT_FALSE(describe(status).empty());
}

// The leader obeys SIGTERM, and its child does not.
TEST_F(Orphans, OneIsEndedWithItsGroup) {
  PosixProcessHost host;
  const auto adopted =
      adopt(host, orphan("(trap \"\" TERM; exec sleep 1000) & exec 9>&-; echo $$; wait"));
  ASSERT_TRUE(adopted);
  host.stop(adopted->id, std::chrono::seconds(30));
  wait();
  EXPECT_TRUE(let_go()) << "PH-3";
}

TEST_F(Orphans, NoneOutlivesItsHost) {
  {
    PosixProcessHost host;
    ASSERT_TRUE(adopt(host, orphan("echo $$; exec sleep 1000")));
  }
  EXPECT_TRUE(let_go()) << "PH-2";
}

// PH-2. The first thread of a process often ends before the others, which hold its files and locks.
TEST_F(Orphans, AProcessWhoseFirstThreadHasEndedLives) {
  int going[2];
  ASSERT_EQ(::pipe2(going, O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    ::setsid();
    ::close(going[1]);
    std::thread([going = going[0]] {
      char byte;
      (void)!::read(going, &byte, 1);
      ::_exit(0);
    }).detach();
    ::syscall(SYS_exit, 0);  // of this thread alone
  }
  const OwnedFd go(going[1]);
  ::close(going[0]);
  const std::filesystem::path leader =
      "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/stat";
  const auto has_ended = [&] {
    std::ifstream stat(leader);
    const std::string text(std::istreambuf_iterator<char>(stat), {});
    return text.substr(text.rfind(')') + 1, 2) == " Z";
  };
  const auto late = std::chrono::steady_clock::now() + kOrphanPatience;
  while (!has_ended() && std::chrono::steady_clock::now() < late) std::this_thread::yield();
  const auto born = birth_of(pid);
  ASSERT_TRUE(born);
  EXPECT_TRUE(open_process(pid, *born));
  {
    PosixProcessHost host;
    ASSERT_TRUE(host.adopt(pid, *born, [](ProcessId, const ExitStatus&) {}));
  }
  EXPECT_FALSE(birth_of(pid)) << "only its zombie is left";
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

TEST_F(Orphans, ThatCannotBeOpenedForNowHaveNotEnded) {
  const pid_t pid = ::getpid();
  const ProcessBirth born = birth_of(pid).value();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  // UBSan looks at a class the first time one of it is used, and needs a descriptor for that.
  ASSERT_FALSE(errno_text(EMFILE).empty());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto opened = open_process(pid, born);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().os_error, EMFILE) << render(opened.error());
  EXPECT_TRUE(open_process(pid, born));
  const auto other = open_process(pid, {born.boot, born.ticks + 1});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kNotFound);
}

// PH-4
TEST_F(Orphans, APidThatIsAnothersByNowIsNotAdopted) {
  PosixProcessHost host;
  ProcessBirth other = birth_of(::getpid()).value();
  ++other.ticks;
  EXPECT_FALSE(host.adopt(::getpid(), other, [](ProcessId, const ExitStatus&) {}));
  other = birth_of(::getpid()).value();
  other.boot = "another";
  EXPECT_FALSE(host.adopt(::getpid(), other, [](ProcessId, const ExitStatus&) {}));
}

}  // namespace
}  // namespace tandem::node
