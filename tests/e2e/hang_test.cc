// A thread at work that stops while its process lives: the links go on and say that nothing moves.
// The test stops the thread as a debugger does, so that no other thread of the process notices.
//
// Tests actors/controller/watchdog.h, scheduler/fleet/hang_timeout.h.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string name_of(const fs::path& thread) {
  std::ifstream file(thread / "comm");
  std::string name;
  std::getline(file, name);
  return name;
}

// The threads that run a rank's actors; none where the process has gone. Those of links and bulk
// transfers have names of their own, and the first thread only waits for signals.
std::vector<pid_t> threads_of_actors(pid_t process) {
  const fs::path threads = "/proc/" + std::to_string(process) + "/task";
  const std::string name = name_of(threads / std::to_string(process));
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& thread : fs::directory_iterator(threads, gone))
    if (const pid_t id = std::stoi(thread.path().filename().string());
        id != process && name_of(thread.path()) == name)
      found.push_back(id);
  return found;
}

// One thread of another process, stopped as long as this lives.
class StoppedThread {
 public:
  static std::optional<StoppedThread> stop(pid_t thread) {
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return std::nullopt;
    StoppedThread stopped(thread);
    if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return std::nullopt;
    int status = 0;
    if (::waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) return std::nullopt;
    return stopped;
  }
  StoppedThread(StoppedThread&& other) noexcept : thread_(std::exchange(other.thread_, 0)) {}
  StoppedThread& operator=(StoppedThread&&) = delete;
  ~StoppedThread() {
    if (thread_ != 0) ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  }
  // Whether it has been killed. Its process is not gone before whoever traces it has seen that.
  bool killed() {
    int status = 0;
    if (thread_ == 0) return true;
    if (::waitpid(thread_, &status, __WALL | WNOHANG) != thread_) return false;
    if (WIFSTOPPED(status)) return false;
    thread_ = 0;
    return true;
  }

 private:
  explicit StoppedThread(pid_t thread) : thread_(thread) {}
  pid_t thread_;  // 0: it is gone
};

// Long answers, so that the rollout decodes nearly all of the time.
Words busy_job() {
  return small_job(kForever, {"data.val_files=[]", "data.max_response_length=96",
                              "rollout.replicas=1", "async.max_staleness=4"});
}

TEST(Hang, AHandlerThatHangsIsMissedByWhatItsWorkHasTakenSoFarAndTheRunGoesOn) {
  const Home home;
  home.up();
  ASSERT_EQ(home.run(Words{"submit"} + busy_job()).code, 0);
  const auto step = [&] {
    return home.json({"get", "jobs", kSmallId})["step"].get<std::int64_t>();
  };
  ASSERT_TRUE(eventually([&] { return step() >= 5; }));
  const auto hung = [&] {
    return home.run({"events"}).text().find("hung in decode: no progress for ") !=
           std::string::npos;
  };
  json before;
  double took = 0;
  // Threads that are stopped amid a wait do not hang, and one that holds a lock may stop the links
  // as well: the process is then replaced for its silence, if it lasts. All goes on, and the next
  // moment is tried.
  bool found = false;
  for (int attempt = 0; attempt < 10 && !found; ++attempt) {
    const std::int64_t before_it = step();
    ASSERT_TRUE(eventually([&] {
      before = actor(home, "rollout/0");
      return before["state"] == "Ready" && step() > before_it;
    }));
    const pid_t process = before["pid"];
    const Time began = steady_now();
    std::vector<StoppedThread> stopped;
    for (const pid_t thread : threads_of_actors(process)) {
      errno = 0;
      auto one = StoppedThread::stop(thread);
      if (!one && errno == EPERM) GTEST_SKIP() << "no thread of another process can be traced here";
      if (one) stopped.push_back(*std::move(one));
    }
    if (stopped.empty()) continue;
    bool killed = false;
    while (!killed && steady_now() - began < std::chrono::seconds(6)) {
      ::poll(nullptr, 0, 10);
      killed = std::ranges::count_if(stopped, &StoppedThread::killed) == std::ssize(stopped);
      took = seconds(steady_now() - began);
    }
    found = killed && eventually([&] {
              return actor(home, "rollout/0")["incarnation"] > before["incarnation"];
            }) &&
            hung();
  }
  const std::string events = home.run({"events"}).text();
  ASSERT_TRUE(found) << events;
  EXPECT_NE(events.find("; the longest before took "), std::string::npos) << events;
  RecordProperty("missed_after_s", std::to_string(took));
  EXPECT_TRUE(eventually([&] {
    const json now = actor(home, "rollout/0");
    return now["state"] == "Ready" && now["incarnation"] > before["incarnation"];
  }));
  const std::int64_t then = step();
  EXPECT_TRUE(eventually([&] { return step() > then + 5; }));
  EXPECT_NE(home.run({"describe", "actors/rollout/0"}).text().find("hung in decode"),
            std::string::npos);
  home.down();
  home.expect_nothing_left();
}

// Idle or at work: the state of a process says that it is stopped, long before its silence does.
TEST(Hang, AProcessThatASignalHasStoppedIsReplacedWithinSeconds_HT4) {
  const Home home;
  home.up();
  ASSERT_EQ(home.run(Words{"submit"} + busy_job()).code, 0);
  const auto step = [&] {
    return home.json({"get", "jobs", kSmallId})["step"].get<std::int64_t>();
  };
  for (const std::string name : {"rollout/0", "reward/0", "learner/0"}) {
    const std::int64_t before_it = step();
    ASSERT_TRUE(eventually([&] { return step() >= before_it + 5; }));
    const json before = actor(home, name);
    ASSERT_EQ(kill(before["pid"].get<pid_t>(), SIGSTOP), 0);
    EXPECT_TRUE(eventually([&] {
      const json now = actor(home, name);
      return now["state"] == "Ready" && now["incarnation"] > before["incarnation"];
    })) << name;
    EXPECT_NE(home.run({"describe", "actors/" + name})
                  .text()
                  .find("hung: a signal (SIGSTOP) has stopped it for 2"),
              std::string::npos)
        << home.run({"events"}).text();
  }
  home.down();
  home.expect_nothing_left();
}

}  // namespace
}  // namespace tandem::e2e
