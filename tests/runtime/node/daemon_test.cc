// The daemons are real ones: this program again, in another role.
#include "runtime/node/daemon.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

namespace tandem::node {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLong = 30s;  // ends a hang; never measured
constexpr Duration kSoon = 20ms;

// A daemon in a role, killed and reaped with the object.
class Started {
 public:
  explicit Started(const std::string& role)
      : it(spawn_daemon({.name = role,
                         .program = "/proc/self/exe",
                         .argv = {"daemon", role},
                         .log = "/dev/null"})
               .value()) {}
  ~Started() {
    if (!reaped_) kill(-it.pid, SIGKILL);  // its children as well
    end();
  }
  Heard hear(const Started& other, Duration timeout) const {
    return wait_for_word(it, other.it, timeout);
  }
  Heard hear(Duration timeout) const { return hear(*this, timeout); }
  int end() {
    int status = 0;
    if (!std::exchange(reaped_, true)) waitpid(it.pid, &status, 0);
    return status;
  }

  Daemon it;

 private:
  bool reaped_ = false;
};

TEST(Daemon, EachWordIsHeardOnceAndTheEndAfterThem) {
  Started two("--two-words");
  EXPECT_EQ(two.hear(kLong), Heard::kWord);
  EXPECT_EQ(two.hear(kLong), Heard::kWord);
  EXPECT_EQ(two.hear(kSoon), Heard::kNothing);
  kill(two.it.pid, SIGKILL);
  EXPECT_EQ(two.hear(kLong), Heard::kEnd);
}

TEST(Daemon, AnEarlyEndIsHeardOfEitherOfTwo) {
  const Started silent("--silent"), ends("--ends");
  EXPECT_EQ(ends.hear(kLong), Heard::kEnd);
  EXPECT_EQ(silent.hear(ends, kLong), Heard::kEnd);
}

TEST(Daemon, OneThatDoesNotComeUpHasEndedBeforeItsStarterGoesOn) {
  const Started silent("--silent"), ends("--ends"), deaf("--deaf");
  ASSERT_EQ(deaf.hear(kLong), Heard::kWord) << "it takes no SIGTERM from here on";
  for (const Started* daemon : {&silent, &ends, &deaf}) {
    end_daemon(daemon->it, daemon == &deaf ? kSoon : kLong);
    EXPECT_TRUE(ProcessEnd(daemon->it.pid).wait_until(steady_now())) << daemon->it.pid;
  }
}

// A socket of the starter would be in use for as long as the daemon lives.
TEST(Daemon, ItGetsNothingThatItsStarterHasOpen) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);  // not closed by an exec
  const OwnedFd read_end(ends[0]);
  OwnedFd write_end(ends[1]);
  const Started two("--two-words");
  ASSERT_EQ(two.hear(kLong), Heard::kWord);
  write_end = OwnedFd();
  char byte = 0;
  EXPECT_EQ(read(read_end.get(), &byte, 1), 0) << "nobody has the other end";
}

TEST(Daemon, ACopyOfThisProcessHasItsMemoryAndNothingThatItHasOpen) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const OwnedFd read_end(ends[0]);
  OwnedFd write_end(ends[1]);
  const std::string here = "only in memory";
  const auto copy = fork_daemon("it", [&] {
    const DaemonWords words = DaemonWords::inherited();
    show_command_line(std::array<std::string, 2>{"it", "1"});
    if (getsid(0) == getpid() && here == "only in memory") words.say();
    for (;;) pause();
    return 0;
  });
  ASSERT_TRUE(copy);
  EXPECT_EQ(wait_for_word(*copy, *copy, kLong), Heard::kWord);
  write_end = OwnedFd();
  char byte = 0;
  EXPECT_EQ(read(read_end.get(), &byte, 1), 0) << "nobody has the other end";
  EXPECT_EQ(reap(*copy), std::nullopt) << "it runs";
  const auto shown = read_file("/proc/" + std::to_string(copy->pid) + "/cmdline");
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->c_str(), std::string("it"));
  EXPECT_EQ(shown->substr(3, 2), std::string("1\0", 2));
  const ProcessEnd end(copy->pid);
  kill(copy->pid, SIGKILL);
  EXPECT_TRUE(end.wait_until(steady_now() + kLong));
  EXPECT_TRUE(reap(*copy)) << "it is taken";
}

TEST(Daemon, TheExitCodeOfACopyIsKept) {
  const auto copy = fork_daemon("it", [] { return 7; });
  ASSERT_TRUE(copy);
  EXPECT_EQ(wait_for_word(*copy, *copy, kLong), Heard::kEnd);
  ASSERT_TRUE(ProcessEnd(copy->pid).wait_until(steady_now() + kLong));
  EXPECT_EQ(reap(*copy), 7);
  EXPECT_EQ(reap(*copy), std::nullopt);
}

TEST(Daemon, TheSignalThatEndedACopyIsKept) {
  const auto copy = fork_daemon("it", [] {
    for (;;) pause();
    return 0;
  });
  ASSERT_TRUE(copy);
  kill(copy->pid, SIGKILL);
  ASSERT_TRUE(ProcessEnd(copy->pid).wait_until(steady_now() + kLong));
  EXPECT_EQ(reap(*copy), 128 + SIGKILL);
  EXPECT_EQ(reap(*copy), std::nullopt) << "it was taken before";
}

TEST(Daemon, ItsChildrenDoNotHoldItsWords) {
  const Started parent("--leaves-a-child");
  EXPECT_EQ(parent.hear(kLong), Heard::kEnd);
}

TEST(Daemon, AWordThatNobodyHearsDoesNoHarm) {
  Started two("--word-and-word-on-signal");
  ASSERT_EQ(two.hear(kLong), Heard::kWord);
  two.it.words = OwnedFd();
  kill(two.it.pid, SIGUSR1);
  EXPECT_EQ(WEXITSTATUS(two.end()), 7);
  DaemonWords::inherited().say();  // and this process is no daemon
}

TEST(Daemon, WhatCannotBeStartedIsSaid) {
  const auto absent = spawn_daemon(
      {.name = "it", .program = "/no/such/program", .argv = {"it"}, .log = "/dev/null"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message, "cannot start it: No such file or directory");
}

TEST(ProcessEnd, IsWaitedFor) {
  Started silent("--silent");
  const ProcessEnd end(silent.it.pid);
  EXPECT_FALSE(end.wait_until(steady_now() + kSoon));
  kill(silent.it.pid, SIGKILL);
  EXPECT_TRUE(end.wait_until(steady_now() + kLong));
  EXPECT_TRUE(ProcessEnd(silent.it.pid).wait_until(steady_now())) << "a zombie has ended";
  silent.end();
  EXPECT_TRUE(ProcessEnd(silent.it.pid).wait_until(steady_now()));
}

TEST(ProcessOfThisHost, IsKnownByAnArgumentOfItsStart) {
  Started silent("--silent");
  ASSERT_EQ(silent.hear(kSoon), Heard::kNothing);
  EXPECT_TRUE(runs_here(silent.it.pid, "--silent"));
  EXPECT_FALSE(runs_here(silent.it.pid, "--sil")) << "whole arguments alone";
  EXPECT_FALSE(runs_here(::getpid(), "--silent")) << "another process, as of a pid of another host";
  kill(silent.it.pid, SIGKILL);
  silent.end();
  EXPECT_FALSE(runs_here(silent.it.pid, "--silent"));
}

int play(const std::string& role) {
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigprocmask(SIG_BLOCK, &usr1, nullptr);
  const DaemonWords words = DaemonWords::inherited();
  if (role == "--ends") return 0;
  if (role == "--leaves-a-child") {
    if (fork() != 0) return 0;
    const char* const argv[] = {"sleep", "1000", nullptr};
    return execv("/bin/sleep", const_cast<char**>(argv));
  }
  if (role == "--deaf") {
    signal(SIGTERM, SIG_IGN);
    words.say();
  }
  if (role == "--two-words" || role == "--word-and-word-on-signal") words.say();
  if (role == "--two-words") words.say();
  if (role == "--word-and-word-on-signal") {
    int signal = 0;
    sigwait(&usr1, &signal);
    words.say();
    return 7;
  }
  for (;;) pause();
}

}  // namespace
}  // namespace tandem::node

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[0]) == "daemon") return tandem::node::play(argv[1]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
