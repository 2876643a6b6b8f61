// The agent with real child processes, which are shell scripts; the test plays the controller.
#include "runtime/node/agent.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "runtime/actor/simulated_executor.h"
#include "runtime/actor/system.h"
#include "runtime/actor/threaded_executor.h"
#include "runtime/base/file.h"

namespace tandem::node {
namespace {

using namespace std::chrono_literals;

// Stands in the place of a controller: keeps the agent's messages; a test waits for as many as it
// needs.
class Listener {
 public:
  struct Heard {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<AgentEvents> events;  // guarded by mutex
    std::vector<RankUsage> usage;     // guarded by mutex; by itself, because its times vary

    std::vector<AgentEvents> wait(std::size_t count) {
      std::unique_lock lock(mutex);
      EXPECT_TRUE(changed.wait_for(lock, 30s, [&] { return events.size() >= count; }))
          << events.size() << " events of " << count;
      return events;
    }
  };
  using Inbox = AgentEvents;
  explicit Listener(Heard& heard) : heard_(heard) {}
  void handle(actor::Context&, NodeUp event) { keep(std::move(event)); }
  void handle(actor::Context&, RankSpawned event) { keep(std::move(event)); }
  void handle(actor::Context&, RankSpawnFailed event) { keep(std::move(event)); }
  void handle(actor::Context&, RankExited event) { keep(std::move(event)); }
  void handle(actor::Context&, UsageReport report) {
    const std::lock_guard lock(heard_.mutex);
    heard_.usage.insert(heard_.usage.end(), report.ranks.begin(), report.ranks.end());
    heard_.changed.notify_all();
  }

 private:
  void keep(AgentEvents event) {
    const std::lock_guard lock(heard_.mutex);
    heard_.events.push_back(std::move(event));
    heard_.changed.notify_all();
  }
  Heard& heard_;
};

// An agent whose ranks are shell scripts.
class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    std::string pattern = testing::TempDir() + "agent.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    const auto controller = system_.spawn<Listener>(
        "controller", [this] { return std::make_unique<Listener>(heard_); });
    agent_ = system_.spawn<Agent>("agent", [this, controller] {
      return std::make_unique<Agent>(AgentConfig{.node = {.node = "here"},
                                                 .program = "/bin/sh",
                                                 .usage_interval = 20ms,
                                                 .on_empty = [this] { ++times_empty_; }},
                                     host_, controller);
    });
    EXPECT_EQ(agent_.tell(LinkCameUp{}), actor::Delivery::kAccepted);
  }
  ~AgentTest() override {
    executor_.stop();
    std::filesystem::remove_all(directory_);
  }

  void spawn(const RankId& id, const std::string& script, const std::string& log = "rank.log") {
    EXPECT_EQ(agent_.tell(SpawnRank{id, {"-c", script}, (directory_ / log).string()}),
              actor::Delivery::kAccepted);
  }
  void stop(const RankId& id) {
    EXPECT_EQ(agent_.tell(StopRankProcess{id, 3'600'000}), actor::Delivery::kAccepted);
  }

  std::filesystem::path directory_;
  Listener::Heard heard_;
  std::atomic<int> times_empty_ = 0;
  PosixProcessHost host_;
  actor::ThreadedExecutor executor_{2, 1};
  actor::System system_{executor_, nullptr};
  actor::Ref<Agent::Inbox> agent_;
};

// The messages about one rank, in order.
std::vector<AgentEvents> of(const std::vector<AgentEvents>& events, const RankId& id) {
  std::vector<AgentEvents> chosen;
  for (const AgentEvents& event : events) {
    const auto is_about_it = [&](const auto& e) {
      if constexpr (requires { e.id; }) return e.id == id;
      return false;
    };
    if (std::visit(is_about_it, event)) chosen.push_back(event);
  }
  return chosen;
}

// A controller at which another agent has the name.
class Refuser {
 public:
  using Inbox = AgentEvents;
  Refuser(int& introductions, const actor::Ref<Agent::Inbox>& agent)
      : introductions_(introductions), agent_(agent) {}
  void handle(actor::Context&, NodeUp) {
    ++introductions_;
    EXPECT_EQ(agent_.tell(NodeRefused{4711}), actor::Delivery::kAccepted);
  }
  template <class Event>
  void handle(actor::Context&, Event) {
    ADD_FAILURE() << "it was told to do nothing";
  }

 private:
  int& introductions_;
  const actor::Ref<Agent::Inbox>& agent_;
};

// A host that has no descriptor left for the first tries to watch a process.
class BusyHost : public ProcessHost {
 public:
  Result<SpawnedProcess> spawn(SpawnSpec, ExitHandler) override { return Error{.message = "none"}; }
  Result<SpawnedProcess> adopt(pid_t pid, const ProcessBirth&, ExitHandler) override {
    if (pid == 11) return Error{ErrorCode::kNotFound, "process 11 has ended"};
    if (++tries_ < 4) return file_error("open process", "", EMFILE);
    return SpawnedProcess{ProcessId{1}, pid};
  }
  void signal(ProcessId, int) override {}
  void stop(ProcessId, Duration) override {}

 private:
  int tries_ = 0;
};
struct TwoKept : KeptRanks {
  std::vector<KeptRank> found() override {
    std::vector<KeptRank> ranks{{.id = {"job/lives", {1}, 0}, .pid = 10, .born = {}}};
    if (!ended_told) ranks.push_back({.id = {"job/ended", {1}, 0}, .pid = 11, .born = {}});
    return ranks;
  }
  void add(const RankId&, pid_t) override {}
  void remove(const RankId& id) override { ended_told = id.actor == "job/ended"; }
  bool ended_told = false;
};
struct Introductions {
  using Inbox = AgentEvents;
  std::vector<NodeUp>& heard;
  void handle(actor::Context&, NodeUp up) { heard.push_back(std::move(up)); }
  template <class Event>
  void handle(actor::Context&, Event) {}
};

TEST(Agent, ARankThatMayLiveIsWatchedBeforeAnIntroduction) {  // AG-3
  BusyHost host;
  TwoKept kept;
  std::vector<NodeUp> heard;
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  const auto controller = system.spawn<Introductions>(
      "controller", [&] { return std::make_unique<Introductions>(Introductions{heard}); });
  const AgentConfig config{.node = {.node = "here"}, .program = "/bin/sh", .kept = &kept};
  const auto agent = system.spawn<Agent>(
      "agent", [&] { return std::make_unique<Agent>(config, host, controller); });
  ASSERT_EQ(agent.tell(LinkCameUp{}), actor::Delivery::kAccepted);
  ASSERT_EQ(agent.tell(IntroduceNode{}), actor::Delivery::kAccepted);
  executor.run_until([] { return false; }, 1s);
  EXPECT_TRUE(heard.empty()) << "it would leave out a rank that lives";
  executor.run_until([] { return false; }, 10s);
  ASSERT_EQ(heard.size(), 1u);
  ASSERT_EQ(heard[0].ranks.size(), 1u);
  EXPECT_EQ(heard[0].ranks[0].id.actor, "job/lives");
  ASSERT_EQ(heard[0].ended.size(), 1u);
  EXPECT_EQ(heard[0].ended[0].id.actor, "job/ended");
}

TEST_F(AgentTest, OneWhoseHostIsToEndSaysSoAndIsEmptyAfterItsLastRank) {  // AG-4
  const RankId rank{"job/rollout/0", {1}, 0};
  spawn(rank, "exec sleep 1000");
  EXPECT_FALSE(std::get<NodeUp>(heard_.wait(2)[0]).leaving);
  EXPECT_EQ(agent_.tell(HostEnds{}), actor::Delivery::kAccepted);
  EXPECT_TRUE(std::get<NodeUp>(heard_.wait(3)[2]).leaving);
  EXPECT_EQ(times_empty_, 0);
  EXPECT_EQ(agent_.tell(LinkCameUp{}), actor::Delivery::kAccepted);
  EXPECT_TRUE(std::get<NodeUp>(heard_.wait(4)[3]).leaving) << "the next controller hears it too";
  stop(rank);
  heard_.wait(5);
  executor_.stop();
  EXPECT_EQ(times_empty_, 1);
}

TEST(Agent, ARefusedOneAsksAgainAndThenGivesUp) {  // AG-2
  PosixProcessHost host;
  int introductions = 0;
  std::int64_t other = 0;
  actor::Ref<Agent::Inbox> agent;
  actor::SimulatedExecutor executor(1);
  actor::System system(executor, nullptr);
  const auto controller = system.spawn<Refuser>(
      "controller", [&] { return std::make_unique<Refuser>(introductions, agent); });
  const AgentConfig config{.node = {.node = "here"},
                           .program = "",
                           .on_refused = [&](const NodeRefused& refused) { other = refused.pid; }};
  agent = system.spawn<Agent>("agent",
                              [&] { return std::make_unique<Agent>(config, host, controller); });
  EXPECT_EQ(agent.tell(LinkCameUp{}), actor::Delivery::kAccepted);
  EXPECT_TRUE(executor.run_until([&] { return other != 0; }, 60s));
  EXPECT_EQ(introductions, kNameAttemptsMax);
  EXPECT_EQ(other, 4711);
  EXPECT_GT(executor.now() - Time{}, 5s) << "a lost agent would be known by now";
}

// A rank would dial it in vain, and be ended after two minutes for having said nothing.
TEST_F(AgentTest, ASocketOfTheControllerThatIsGoneIsTheReasonAtOnce) {
  const std::string socket = (directory_ / "socket").string();
  const auto controller = system_.spawn<Listener>(
      "controller-2", [this] { return std::make_unique<Listener>(heard_); });
  const auto agent = system_.spawn<Agent>("agent-2", [&] {
    return std::make_unique<Agent>(
        AgentConfig{
            .node = {.node = "there"}, .program = "/bin/sh", .controller = "ipc://" + socket},
        host_, controller);
  });
  EXPECT_EQ(agent.tell(LinkCameUp{}), actor::Delivery::kAccepted);
  const RankId first{"job-1/rollout/0", Incarnation{1}, 0},
      second{"job-1/rollout/0", Incarnation{2}, 0};
  const SpawnRank spawn{first, {"-c", "exit 0"}, (directory_ / "rank.log").string()};
  EXPECT_EQ(agent.tell(spawn), actor::Delivery::kAccepted);
  const auto events = of(heard_.wait(3), first);
  ASSERT_EQ(events.size(), 1u);
  const auto* failed = std::get_if<RankSpawnFailed>(&events[0]);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->message,
            "the controller's socket is gone: " + socket + " was removed by another program");
  std::ofstream(socket) << "";
  EXPECT_EQ(agent.tell(SpawnRank{second, spawn.arguments, spawn.log_path}),
            actor::Delivery::kAccepted);
  EXPECT_EQ(of(heard_.wait(5), second).size(), 2u) << "it is started and ends";
}

TEST_F(AgentTest, RunsAUsersProgramWithItsWordsInAVariable) {
  const RankId id{"job-1/counter/0", Incarnation{7}, 0};
  SpawnRank spawn{.id = id, .log_path = (directory_ / "program.log").string()};
  spawn.program = {"sh", "-c", "printf '%s|' \"$TANDEM_ACTOR\" \"$FLAVOUR\" \"$PWD\" \"$#\""};
  spawn.environment = {{"FLAVOUR", "plum"}};
  spawn.working_directory = directory_.string();
  // A controller that tells another grace: ranks that start and never meet it end as early.
  EXPECT_EQ(agent_.tell(LinkCameUp{12s}), actor::Delivery::kAccepted);
  EXPECT_EQ(agent_.tell(spawn), actor::Delivery::kAccepted);
  const auto events = of(heard_.wait(4), id);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<RankExited>(events[1]).code, 0);
  std::ifstream log(directory_ / "program.log");
  const std::string said{std::istreambuf_iterator<char>(log), {}};
  std::string words = "job-1/counter/0|7|0|||||" + std::to_string(getpid()) + "|12|";
  for (std::size_t at = 0, n = 0; n < 8; ++n) {
    at = words.find('|', at);
    words[at] = kActorWordSeparator;
  }
  EXPECT_EQ(said, words + "plum|" + directory_.string() + "|0|");
}

// Its limit is set when it runs already.
TEST_F(AgentTest, AUsersProgramHasTheLimitOfFilesThatTandemFound_OF1) {
  constexpr const char* kFound = "TANDEM_OPEN_FILES";
  ::setenv(kFound, "256", 1);
  const RankId id{"job-1/counter/0", Incarnation{7}, 0};
  SpawnRank spawn{.id = id, .log_path = (directory_ / "program.log").string()};
  spawn.program = {"sh", "-c", "until [ $(ulimit -Sn) = 256 ]; do :; done"};
  EXPECT_EQ(agent_.tell(spawn), actor::Delivery::kAccepted);
  const auto events = of(heard_.wait(3), id);
  ::unsetenv(kFound);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<RankExited>(events[1]).code, 0);
}

TEST_F(AgentTest, StartsAProgramThroughItsOwnBinaryWhereArgumentsAreGiven) {
  const RankId id{"job-1/counter/0", Incarnation{7}, 0};
  SpawnRank spawn{.id = id, .log_path = (directory_ / "program.log").string()};
  spawn.arguments = {"-c", "printf '%s|' \"$0\" \"$@\""};
  spawn.program = {"/the/program", "its argument"};
  EXPECT_EQ(agent_.tell(spawn), actor::Delivery::kAccepted);
  ASSERT_EQ(of(heard_.wait(3), id).size(), 2u);
  std::ifstream log(directory_ / "program.log");
  const std::string said{std::istreambuf_iterator<char>(log), {}};
  EXPECT_EQ(said, "/the/program|its argument|");
}

TEST_F(AgentTest, EverySpawnIsAnsweredAndThenItsEndOnce) {  // AG-1
  constexpr int kShort = 16;
  const auto rank = [](std::int32_t index) { return RankId{"job/rollout/0", {1}, index}; };
  const RankId refused{"job/rollout/1", {1}, 0}, stopped{"job/rollout/2", {1}, 0};
  for (int i = 0; i < kShort; ++i) spawn(rank(i), "exit " + std::to_string(i));
  spawn(refused, "exit 0", std::string(300, 'x'));  // longer than a file's name may be
  spawn(stopped, "exec sleep 1000");
  stop(stopped);
  stop({"nobody", {1}, 0});

  constexpr std::size_t kEvents = 1 + 2 * kShort + 1 + 2;
  const std::vector<AgentEvents> events = heard_.wait(kEvents);
  ASSERT_EQ(events.size(), kEvents);
  EXPECT_EQ(std::get<NodeUp>(events[0]).node, "here");
  for (int i = 0; i < kShort; ++i) {
    const auto life = of(events, rank(i));
    ASSERT_EQ(life.size(), 2u) << i;
    EXPECT_GT(std::get<RankSpawned>(life[0]).pid, 0);
    EXPECT_EQ(std::get<RankExited>(life[1]).code, i);
    EXPECT_EQ(std::get<RankExited>(life[1]).signal, std::nullopt);
  }
  const auto failure = of(events, refused);
  ASSERT_EQ(failure.size(), 1u);
  EXPECT_NE(std::get<RankSpawnFailed>(failure[0]).message, "");
  const auto ended = of(events, stopped);
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(std::get<RankExited>(ended[1]).signal, SIGTERM);
  EXPECT_EQ(std::get<RankExited>(ended[1]).description, "killed by signal 15 (Terminated)");
}

// Another controller learns what the agent has, and which ends its predecessor may have missed.
TEST_F(AgentTest, ItIntroducesItselfWithItsRanksToTheNextController) {  // AG-1
  const RankId lives{"job/counter/0", {1}, 0}, ended{"job/counter/1", {2}, 0};
  spawn(lives, "exec sleep 1000");
  spawn(ended, "exit 3");
  const auto before = heard_.wait(4);
  EXPECT_TRUE(std::get<NodeUp>(before[0]).ranks.empty());
  EXPECT_EQ(agent_.tell(LinkCameUp{}), actor::Delivery::kAccepted);
  const auto up = std::get<NodeUp>(heard_.wait(5)[4]);
  ASSERT_EQ(up.ranks.size(), 1u);
  EXPECT_EQ(up.ranks[0].id, lives);
  EXPECT_EQ(up.ranks[0].pid, std::get<RankSpawned>(of(before, lives)[0]).pid);
  ASSERT_EQ(up.ended.size(), 1u);
  EXPECT_EQ(up.ended[0].id, ended);
  EXPECT_EQ(up.ended[0].code, 3);
  EXPECT_EQ(up.newest_order, ended);
  EXPECT_EQ(std::get<NodeUp>(before[0]).newest_order, std::nullopt);
}

// A controller whose journal was full has held an order back, and gives it again to the agent that
// has introduced itself meanwhile.
TEST_F(AgentTest, ASecondOrderOfARankStartsNothing) {  // AG-1
  const RankId rank{"job/counter/0", {1}, 0};
  spawn(rank, "exec sleep 1000");
  spawn(rank, "exec sleep 1000");
  stop(rank);
  const std::vector<AgentEvents> events = heard_.wait(4);
  const auto life = of(events, rank);
  ASSERT_EQ(life.size(), 3u);
  EXPECT_EQ(std::get<RankSpawned>(life[0]).pid, std::get<RankSpawned>(life[1]).pid);
  EXPECT_TRUE(std::holds_alternative<RankExited>(life[2]));
  spawn(rank, "exec sleep 1000");
  const auto again = of(heard_.wait(5), rank);
  ASSERT_EQ(again.size(), 4u);
  EXPECT_EQ(std::get<RankExited>(again[3]).signal, SIGTERM) << "the end that it had";
}

// A process that takes its time to end still holds its GPU: the controller hears of its end, and
// leases the GPU again, only when the process is gone.
TEST_F(AgentTest, AnEndIsToldWhenTheProcessIsGone) {
  const RankId slow{"job/learner/0", {1}, 0};
  const auto fifo = [this](const char* name) {
    const std::string path = (directory_ / name).string();
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  };
  const std::string told = fifo("told"), go = fifo("go");
  spawn(slow, "trap 'echo > " + told + "; read line < " + go + "; exit 7' TERM; echo > " + told +
                  "; while :; do sleep 1000 & wait; done");
  // `ear` is open for writing too, and all the time: between two writers there is no end of the
  // file.
  std::fstream ear(told, std::ios::in | std::ios::out);
  const auto hear = [&ear] {
    std::string line;
    return static_cast<bool>(std::getline(ear, line));
  };
  ASSERT_TRUE(hear());  // its trap is set
  stop(slow);
  ASSERT_TRUE(hear());  // it is ending
  const std::vector<AgentEvents> before = of(heard_.wait(2), slow);
  ASSERT_EQ(before.size(), 1u) << "told to end is not gone";
  const auto pid = static_cast<pid_t>(std::get<RankSpawned>(before[0]).pid);
  EXPECT_EQ(::kill(pid, 0), 0);
  std::ofstream(go) << "\n";
  const std::vector<AgentEvents> after = of(heard_.wait(3), slow);
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(std::get<RankExited>(after[1]).code, 7);
  EXPECT_EQ(::kill(pid, 0), -1) << "reaped, so that its devices are closed";
}

TEST_F(AgentTest, TheUseOfEachLivingRankIsReported) {
  const RankId busy{"job/reward/0", {1}, 0};
  spawn(busy, "while :; do :; done");
  std::unique_lock lock(heard_.mutex);
  const auto at_work = [&] {
    return std::ranges::any_of(heard_.usage, [&](const RankUsage& usage) {
      return usage.id == busy && usage.cpu_percent > 0 && usage.memory_bytes > 0;
    });
  };
  EXPECT_TRUE(heard_.changed.wait_for(lock, 30s, at_work)) << heard_.usage.size() << " reports";
}

}  // namespace
}  // namespace tandem::node
