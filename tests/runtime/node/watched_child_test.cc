#include "runtime/node/watched_child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "runtime/base/clock.h"
#include "runtime/node/daemon.h"
#include "tests/runtime/patience.h"

namespace tandem::node {
namespace {

bool eventually(const std::function<bool()>& condition) {
  const Time end = steady_now() + kPatience;
  while (!condition())
    if (steady_now() > end) return false;
  return true;
}

int end_of(const WatchedChild& child) {
  std::optional<int> status;
  EXPECT_TRUE(eventually([&] { return (status = child.ended()).has_value(); }));
  return status.value_or(-1);
}

// Beats until it is killed.
int beat_for_ever(Pulse pulse) {
  for (;;) pulse.beat();
}

TEST(WatchedChild, ItsEndIsThatOfItsWork) {
  const auto child = WatchedChild::start([](Pulse) { return 7; });
  ASSERT_TRUE(child);
  const int status = end_of(*child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(WatchedChild, AChildThatIsStoppedMissesItsBeats) {
  int begun[2];
  ASSERT_EQ(pipe(begun), 0);
  auto child = WatchedChild::start([&](Pulse pulse) {
    pulse.beat();
    if (write(begun[1], "b", 1) != 1) return 1;
    return beat_for_ever(pulse);
  });
  ASSERT_TRUE(child);
  char word = 0;
  ASSERT_EQ(read(begun[0], &word, 1), 1);
  child->signal(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return child->missed() >= 1000; }));
  child->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return child->missed() == 0; }));
  child->signal(SIGKILL);
  EXPECT_EQ(WTERMSIG(end_of(*child)), SIGKILL);
}

TEST(WatchedChild, WC_2_APulseThatRestsIsNotMissed) {
  int rests[2];
  ASSERT_EQ(pipe(rests), 0);
  auto child = WatchedChild::start([&](Pulse pulse) {
    pulse.beat();
    pulse.rest();
    if (write(rests[1], "r", 1) != 1) return 1;
    for (;;) pause();
  });
  ASSERT_TRUE(child);
  char word = 0;
  ASSERT_EQ(read(rests[0], &word, 1), 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(child->missed(), 0);
  child->signal(SIGKILL);
  end_of(*child);
}

TEST(WatchedChild, WC_1_ItEndsWithItsWatcher) {
  int pids[2];
  ASSERT_EQ(pipe(pids), 0);
  const pid_t watcher = fork();
  if (watcher == 0) {
    const auto child = WatchedChild::start(beat_for_ever);
    const pid_t pid = child ? child->pid() : 0;
    if (write(pids[1], &pid, sizeof(pid)) != sizeof(pid)) _exit(1);
    for (;;) pause();
  }
  pid_t pid = 0;
  ASSERT_EQ(read(pids[0], &pid, sizeof(pid)), static_cast<ssize_t>(sizeof(pid)));
  ASSERT_GT(pid, 0);
  const ProcessEnd end(pid);
  EXPECT_FALSE(end.wait_until(steady_now()));
  kill(watcher, SIGKILL);
  waitpid(watcher, nullptr, 0);
  EXPECT_TRUE(end.wait_until(steady_now() + kPatience));
}

}  // namespace
}  // namespace tandem::node
