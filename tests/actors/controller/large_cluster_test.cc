// The whole control plane at its largest: a thousand nodes with eight users' actors each, and a job
// that trains beside them with a hundred thousand live groups. Everybody starts, a node is lost and
// comes back, the controller dies, all is cancelled. What the controller hears for each node is
// what it hears with ten nodes, and a full mailbox ends nobody.
//
// Tests actors/controller/controller.h, actors/exchange/exchange.h, runtime/link/remote.h.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/log.h"
#include "tests/actors/controller/scenario.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

const bool kLargeIsSilent = (log::mute(), true);

constexpr std::int32_t kFewNodes = 10;
constexpr std::int32_t kManyNodes = TANDEM_SANITIZED ? 50 : 1000;
constexpr std::int64_t kFewGroups = 100;
constexpr std::int64_t kManyGroups = TANDEM_SANITIZED ? 2'000 : 100'000;
constexpr double kCpusOfNode = 8;
constexpr std::int32_t kActorsPerNode = 8;
constexpr double kCpusOfActor = 0.85;  // nine or fewer on a node, whichever is filled first
constexpr std::int64_t kGroupsPerStep = 10;
constexpr std::int32_t kRollouts = 16, kRewards = 2, kLearners = 1;
constexpr std::uint64_t kCheckEvery = 1000;  // at 100,000 groups a check takes some 100 ms
constexpr Duration kAllStartWithin = 2min, kAllEndWithin = 2min;
constexpr Duration kTrains = 2s;     // before the controller dies, and after
constexpr Duration kStands = 200ms;  // the controller, while 8,000 processes start
constexpr std::size_t kSmallMailbox = 256;

// As many roles of users' actors as a node has actors: one role has at most 1,024 of them.
JobShape users_actors(std::int32_t nodes) {
  JobShape shape{.name = "users", .roles = {}};
  for (int i = 0; i < kActorsPerNode; ++i) {
    const messages::Role role{"counter" + std::to_string(i)};
    shape.roles.push_back(role);
    shape.programs[role] = {.command = {kUsersProgram}};
    shape.replicas[role] = nodes;
    shape.per_rank[role] = scheduler::resources({.cpus = kCpusOfActor});
  }
  return shape;
}

SimulatedJob training(std::int64_t live) {
  SimulatedJob job = plain_job(1);
  job.name = "train";
  job.replicas = {{messages::Role::kRollout, kRollouts}, {messages::Role::kReward, kRewards}};
  job.learner_ranks = kLearners;
  job.cpus_per_rank = 0.05;
  job.exchange.budget = {.max_staleness = 20'000,
                         .lookahead = live / kGroupsPerStep - 1,
                         .sync_steps = 1,
                         .groups_per_step = kGroupsPerStep,
                         .steps_total = 30'000};
  job.exchange.save = {};
  return job;
}

class LargeCluster {
 public:
  explicit LargeCluster(std::int32_t nodes, const ClusterConditions& conditions)
      : cluster(1, conditions), nodes_(nodes) {}

  void register_nodes() {
    for (std::int32_t i = 0; i < nodes_; ++i) cluster.add_node(node_name(i), kCpusOfNode);
    const auto up = [&] { return std::ssize(cluster.core().nodes()) == nodes_; };
    ASSERT_TRUE(comes(up, kAllStartWithin));
  }
  void submit_users_actors() {
    const auto submitted = cluster.submit_actors(users_actors(nodes_));
    ASSERT_TRUE(submitted) << render(submitted.error());
    users = *submitted;
  }
  void await_users_actors() {
    ASSERT_TRUE(comes([&] { return all_ready(users, nodes_ * kActorsPerNode); }, kAllStartWithin));
  }
  void lose_node_and_replace() {
    const auto before = cluster.ranks_running();
    cluster.kill_node(node_name(0));
    cluster.run_for(1s);
    cluster.add_node(node_name(0), kCpusOfNode);
    await_users_actors();
    const auto after = cluster.ranks_running();
    EXPECT_EQ(after.size(), before.size());
    EXPECT_FALSE(after == before) << "the node had actors";
  }
  void train(std::int64_t live) {
    const auto submitted = cluster.submit(training(live));
    ASSERT_TRUE(submitted) << render(submitted.error());
    trains = *submitted;
    constexpr std::int32_t kActors = kRollouts + kRewards + 1;
    ASSERT_TRUE(comes([&] { return all_ready(trains, kActors); }, kAllStartWithin));
    // The groups of a step that is committed are followed by as many within some milliseconds.
    const auto all_live = [&] { return counters().live >= live - kGroupsPerStep; };
    ASSERT_TRUE(comes(all_live, kAllStartWithin)) << counters().live;
    cluster.run_for(kTrains);
  }
  // Every group that lives, in pages.
  void list_groups() {
    const std::int64_t live = counters().live;
    const auto exchange = cluster.view().exchanges.at(trains);
    std::int64_t listed = 0;
    for (std::uint64_t after = 0;;) {
      std::optional<Result<std::vector<messages::GroupView>>> page;
      const actor::ReplyTo<std::vector<messages::GroupView>> reply(
          [&page](Result<std::vector<messages::GroupView>> given) { page = std::move(given); });
      ASSERT_EQ(exchange.tell(actor::Ask<messages::GetGroups>{{.after = after}, reply}),
                actor::Delivery::kAccepted);
      ASSERT_TRUE(cluster.run_until([&] { return page.has_value(); }, 1s));
      ASSERT_TRUE(page->has_value());
      const std::vector<messages::GroupView>& groups = **page;
      if (groups.empty()) break;
      EXPECT_LE(groups.size(), messages::kGroupsPerAnswer);
      listed += std::ssize(groups);
      after = groups.back().group;
    }
    EXPECT_GE(listed, live);
  }
  void lose_rollout() {
    const auto live = counters().live;
    const auto died = cluster.ranks_running();
    const auto victim = std::ranges::find_if(
        died, [&](const node::RankId& rank) { return rank.actor == trains + "/rollout/0"; });
    ASSERT_NE(victim, died.end());
    cluster.kill(*victim);
    cluster.run_for(1s);
    ASSERT_TRUE(comes([&] { return all_ready(trains, kRollouts + kRewards + 1); }, 2min));
    EXPECT_GT(std::ranges::count(run().record.events, "released", &JournalledRow::kind), 0);
    EXPECT_GE(counters().live, live - kGroupsPerStep);
  }
  // All that lived lives on under the next controller, and is heard by it.
  void lose_controller() {
    const auto before = cluster.ranks_running();
    const std::int64_t trained = counters().trained;
    cluster.restart_controller(1s);
    await_users_actors();
    ASSERT_TRUE(comes([&] { return all_ready(trains, kRollouts + kRewards + 1); }, 2min));
    EXPECT_TRUE(cluster.ranks_running() == before) << "somebody was started again";
    cluster.run_for(kTrains);
    EXPECT_GT(counters().trained, trained);
  }
  void cancel() {
    run().exchange->core().ledger().check_by_recount();
    const scheduler::LedgerCounters now = counters();
    EXPECT_EQ(now.issued, now.trained + now.discarded_total() + now.live) << "LG-1";
    ASSERT_TRUE(cluster.cancel(trains));
    ASSERT_TRUE(cluster.cancel(users));
    const auto ended = [&] {
      return cluster.final(trains) && cluster.final(users) && cluster.ranks_running().empty();
    };
    ASSERT_TRUE(comes(ended, kAllEndWithin)) << cluster.ranks_running().size();
    EXPECT_EQ(cluster.final_state(users), "Cancelled");
    expect_clean_end(cluster, trains, "Cancelled");
  }
  void expect_nothing_amiss() const {
    EXPECT_EQ(cluster.violations(), std::vector<std::string>{});
    EXPECT_EQ(cluster.counters().undecodable, 0u);
    EXPECT_EQ(cluster.counters().answers_lost, 0u);
  }

  SimulatedCluster cluster;
  std::string users, trains;  // jobs

 private:
  static std::string node_name(std::int32_t i) { return "node-" + std::to_string(i); }
  const SimulatedRun& run() const { return *cluster.run_of(trains); }
  scheduler::LedgerCounters counters() const {
    return run().exchange ? run().exchange->core().ledger().counters()
                          : scheduler::LedgerCounters{};
  }
  bool all_ready(const std::string& job, std::int32_t actors) const {
    const auto& jobs = cluster.core().jobs();
    const auto found = jobs.find(job);
    return found != jobs.end() && found->second.ready == actors &&
           std::ssize(found->second.actors) == actors;
  }
  // Looks ten times a second: a look may cost as much as the cluster is large.
  bool comes(const std::function<bool()>& holds, Duration within) {
    const Time until = cluster.executor().now() + within;
    do {
      if (cluster.executor().now() > until) return false;
      cluster.run_for(100ms);
    } while (!holds());
    return true;
  }

  const std::int32_t nodes_;
};

struct Phase {
  std::uint64_t messages = 0;  // that the controller's process has handled
  std::uint64_t steps = 0;     // of the simulation
  Duration time{};             // virtual
};

// What each phase took. The messages of the controller that dies are not those of the next one.
std::map<std::string, Phase> live_through(std::int32_t nodes, std::int64_t groups) {
  ClusterConditions conditions;
  conditions.check_every = kCheckEvery;
  LargeCluster of(nodes, conditions);
  SimulatedCluster& cluster = of.cluster;
  std::map<std::string, Phase> phases;
  const auto phase = [&](const std::string& name, const std::function<void()>& happens) {
    if (testing::Test::HasFatalFailure()) return;
    const testing::ScopedTrace trace(__FILE__, __LINE__, name);
    const std::uint64_t messages = cluster.messages_handled(), steps = cluster.executor().steps();
    const Time began = cluster.executor().now();
    happens();
    Phase& took = phases[name];
    const std::uint64_t now = cluster.messages_handled();
    took = {now >= messages ? now - messages : now, cluster.executor().steps() - steps,
            cluster.executor().now() - began};
    std::printf("%5d nodes: %-28s %8llu messages to the controller, %9llu steps, %6.1f s\n", nodes,
                name.c_str(), static_cast<unsigned long long>(took.messages),
                static_cast<unsigned long long>(took.steps), seconds(took.time));
    std::fflush(stdout);
  };
  phase("nodes register", [&] { of.register_nodes(); });
  phase("actors start", [&] {
    of.submit_users_actors();
    of.await_users_actors();
  });
  phase("a node is lost and replaced", [&] { of.lose_node_and_replace(); });
  phase("a job trains", [&] { of.train(groups); });
  phase("its groups are listed", [&] { of.list_groups(); });
  phase("a rollout is lost", [&] { of.lose_rollout(); });
  phase("the controller is lost", [&] { of.lose_controller(); });
  phase("all is cancelled", [&] { of.cancel(); });
  if (testing::Test::HasFatalFailure()) return phases;
  of.expect_nothing_amiss();
  EXPECT_EQ(cluster.network().put_off(), 0u) << "a mailbox was full";
  return phases;
}

TEST(LargeCluster, StartsLosesANodeAndItsControllerAndEnds) {
  const auto few = live_through(kFewNodes, kFewGroups);
  ASSERT_FALSE(HasFatalFailure());
  const auto many = live_through(kManyNodes, kManyGroups);
  ASSERT_FALSE(HasFatalFailure());
  // By the nodes, and by the event. A tick of the watchdog or of the controller's own is half of
  // one of ten nodes.
  const auto per_node = [](const Phase& phase, std::int32_t nodes) {
    return static_cast<double>(phase.messages) / nodes;
  };
  for (const char* const what : {"nodes register", "actors start"}) {
    const double on_few = per_node(few.at(what), kFewNodes);
    const double on_many = per_node(many.at(what), kManyNodes);
    std::printf("%-28s %.2f messages for each of %d nodes, %.2f for each of %d\n", what, on_few,
                kFewNodes, on_many, kManyNodes);
    EXPECT_LE(on_many, on_few * 1.5) << what;
  }
  const char* const lost = "a node is lost and replaced";
  EXPECT_LE(many.at(lost).messages, few.at(lost).messages * 3 / 2 + 20);

  std::uint64_t steps = 0;
  for (const auto& [name, phase] : many) {
    steps += phase.steps;
    std::string key = name;
    std::ranges::replace(key, ' ', '_');
    RecordProperty(key + "_messages", std::to_string(phase.messages));
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("%llu steps of the simulation, at most %ld MiB\n",
              static_cast<unsigned long long>(steps), used.ru_maxrss / 1024);
  RecordProperty("steps", std::to_string(steps));
  RecordProperty("max_rss_mib", std::to_string(used.ru_maxrss / 1024));
}

// The controller stands still while all start, and hears no more than its mailbox holds: links keep
// the rest, and nobody is ended or started again for that.
TEST(LargeCluster, StartsAlsoWhereTheMailboxIsFull) {
  ClusterConditions conditions;
  conditions.check_every = kCheckEvery;
  conditions.mailbox_max = TANDEM_SANITIZED ? 16 : kSmallMailbox;
  LargeCluster of(kManyNodes, conditions);
  of.register_nodes();
  ASSERT_FALSE(HasFatalFailure());
  of.submit_users_actors();
  ASSERT_FALSE(HasFatalFailure());
  of.cluster.stall_controller(kStands);
  of.await_users_actors();
  ASSERT_FALSE(HasFatalFailure());
  std::printf("%llu parcels were put off\n",
              static_cast<unsigned long long>(of.cluster.network().put_off()));
  EXPECT_GT(of.cluster.network().put_off(), 0u);
  EXPECT_EQ(of.cluster.ranks_running().size(),
            static_cast<std::size_t>(kManyNodes * kActorsPerNode));
  for (const auto& [name, actor] : of.cluster.core().jobs().at(of.users).actors)
    EXPECT_EQ(actor.crash_loop.deaths, 0) << name;
  of.expect_nothing_amiss();
}

}  // namespace
}  // namespace tandem::controller
