// Users' programs in a whole simulated cluster: the real controller and agents, messages that are
// encoded and travel late, processes that die at any moment.
//
// Tests actors/controller/controller_core.h, actors/program/program_host.h.
#include <gtest/gtest.h>

#include <set>

#include "tests/actors/controller/simulation.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

JobShape counters(std::int32_t replicas) {
  const messages::Role counter{kUsersProgram};
  return {.name = "demo",
          .roles = {counter},
          .programs = {{counter, {.command = {kUsersProgram}}}},
          .replicas = {{counter, replicas}},
          .per_rank = {{counter, scheduler::resources({.cpus = 0.5})}}};
}

// Looks ten times a second, for at most a minute of virtual time.
bool all_ready(SimulatedCluster& cluster, const std::string& job, std::size_t count) {
  for (int look = 0; look < 600; ++look) {
    for (const JobRecord& record : cluster.view().jobs)
      if (record.id == job && record.ready == static_cast<std::int32_t>(count) &&
          record.actors.size() == count)
        return true;
    cluster.run_for(100ms);
  }
  return false;
}

// A job of two actors that are ready, on a node with room for four.
Result<std::string> two_counters(SimulatedCluster& cluster) {
  cluster.add_node("a", 4);
  cluster.run_for(1s);
  auto job = cluster.submit_actors(counters(2));
  if (job && !all_ready(cluster, *job, 2)) return Error{.message = *job + " is not ready"};
  return job;
}

TEST(ProgramsSimulation, AreAskedScaledKilledAndFinish) {
  for_seeds(20, [](std::uint64_t seed) {
    SimulatedCluster cluster(seed);
    const auto job = two_counters(cluster);
    ASSERT_TRUE(job) << render(job.error());
    const std::string first = *job + "/counter/0";
    EXPECT_EQ(cluster.ask_program(first, R"({"add": 2})")->body, "2");
    EXPECT_EQ(cluster.ask_program(first, R"({"add": 3})")->body, "5");
    ASSERT_TRUE(cluster.scale(*job, {kUsersProgram}, 4));
    ASSERT_TRUE(all_ready(cluster, *job, 4));
    for (const node::RankId& rank : cluster.ranks_running())
      if (rank.actor == first) cluster.kill(rank);
    const auto lost = cluster.ask_program(first, R"({"add": 1})");
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, ErrorCode::kUnreachable);
    EXPECT_NE(lost.error().message.find(first), std::string::npos) << lost.error().message;
    ASSERT_TRUE(all_ready(cluster, *job, 4));
    EXPECT_EQ(cluster.ask_program(first, R"({"add": 1})")->body, "1") << "a fresh state";
    ASSERT_TRUE(cluster.scale(*job, {kUsersProgram}, 2));
    ASSERT_TRUE(all_ready(cluster, *job, 2));
    for (int i = 0; i < 2; ++i)
      EXPECT_FALSE(cluster.ask_program(*job + "/counter/" + std::to_string(i), R"({"end": 0})"));
    ASSERT_TRUE(cluster.run_until([&] { return cluster.final(*job); }, 60s));
    EXPECT_EQ(cluster.final_state(*job), "Succeeded");
    EXPECT_TRUE(cluster.ranks_running().empty());
  });
}

ClusterConditions storm() {
  ClusterConditions conditions;
  conditions.network.lost = 0.02;
  conditions.network.overtaken = true;
  conditions.processes.spawns_fail = 0.05;
  return conditions;
}

TEST(ProgramsSimulation, StormsLeaveNothingAndAnswerEveryQuestion) {
  for_seeds(40, [](std::uint64_t seed) {
    SimulatedCluster cluster(seed, storm());
    cluster.add_node("a", 2);
    cluster.add_node("b", 2);
    cluster.run_for(1s);
    const auto job = cluster.submit_actors(counters(3));
    ASSERT_TRUE(job) << render(job.error());
    Rng rng(derive_seed(seed, "storm"));
    for (int i = 0; i < 40 && !cluster.final(*job); ++i) {
      cluster.run_for(Duration(rng.below(3'000'000'000)));
      const auto ranks = cluster.ranks_running();
      switch (rng.below(4)) {
        case 0:
          if (!ranks.empty()) cluster.kill(ranks[rng.below(ranks.size())]);
          break;
        case 1:
          (void)cluster.scale(*job, {kUsersProgram}, static_cast<std::int32_t>(rng.below(6)));
          break;
        default:  // CHECKed to be answered
          (void)cluster.ask_program(*job + "/counter/" + std::to_string(rng.below(4)),
                                    rng.below(8) == 0 ? R"({"end": 3})" : R"({"add": 1})");
          break;
      }
    }
    (void)cluster.cancel(*job);
    ASSERT_TRUE(cluster.run_until([&] { return cluster.final(*job); }, 120s));
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ranks_running().empty(); }, 60s));
  });
}

// The state of a program that no fault has met, and of the cluster that a controller left behind.
TEST(ProgramsSimulation, OutliveTheirController) {
  for_seeds(20, [](std::uint64_t seed) {
    SimulatedCluster cluster(seed);
    cluster.add_node("a", 4);
    cluster.run_for(1s);
    const auto job = cluster.submit_actors(counters(3));
    ASSERT_TRUE(job) << render(job.error());
    ASSERT_TRUE(all_ready(cluster, *job, 3));
    const std::string first = *job + "/counter/0";
    const std::vector<node::RankId> before = cluster.ranks_running();
    Rng rng(derive_seed(seed, "controller"));
    for (int i = 1; i <= 5; ++i) {
      EXPECT_EQ(cluster.ask_program(first, R"({"add": 1})")->body, std::to_string(i));
      cluster.restart_controller(Duration(rng.below(3'000'000'000)));
      ASSERT_TRUE(all_ready(cluster, *job, 3)) << "controller " << i + 1;
      EXPECT_EQ(cluster.ranks_running(), before) << "nobody was started again";
    }
    EXPECT_FALSE(cluster.ask_program(*job + "/counter/1", R"({"end": 0})"));
    ASSERT_TRUE(cluster.scale(*job, {kUsersProgram}, 2));
    cluster.restart_controller(1s);
    while (!cluster.ask_program(first, R"({"add": 1})")) cluster.run_for(100ms);
    EXPECT_EQ(cluster.ask_program(first, R"({"add": 1})")->body, "7");
    EXPECT_FALSE(cluster.ask_program(first, R"({"end": 0})"));
    ASSERT_TRUE(cluster.run_until([&] { return cluster.final(*job); }, 60s));
    EXPECT_EQ(cluster.final_state(*job), "Succeeded")
        << "one had finished under another controller";
  });
}

// CC-1 for the processes that there are.
void expect_one_each(const SimulatedCluster& cluster) {
  std::set<std::string> actors;
  for (const node::RankId& rank : cluster.ranks_running())
    EXPECT_TRUE(actors.insert(rank.actor).second) << "CC-1: " << rank.actor;
}

TEST(ProgramsSimulation, StormsWithControllersThatDieLeaveNothing) {
  for_seeds(60, [](std::uint64_t seed) {
    SimulatedCluster cluster(seed, storm());
    cluster.add_node("a", 2);
    cluster.add_node("b", 2);
    cluster.run_for(1s);
    const auto job = cluster.submit_actors(counters(3));
    ASSERT_TRUE(job) << render(job.error());
    Rng rng(derive_seed(seed, "storm"));
    for (int i = 0; i < 40 && !cluster.final(*job); ++i) {
      // From no time at all: a controller dies between any two events of the first milliseconds.
      cluster.run_for(Duration(rng.below(rng.below(2) == 0 ? 20'000'000 : 3'000'000'000)));
      expect_one_each(cluster);
      const auto ranks = cluster.ranks_running();
      switch (rng.below(5)) {
        case 0:
          if (!ranks.empty()) cluster.kill(ranks[rng.below(ranks.size())]);
          break;
        case 1:
          (void)cluster.scale(*job, {kUsersProgram}, static_cast<std::int32_t>(rng.below(6)));
          break;
        case 2:
        case 3:
          cluster.restart_controller(Duration(rng.below(2'000'000'000)));
          break;
        default:
          (void)cluster.ask_program(*job + "/counter/" + std::to_string(rng.below(4)),
                                    rng.below(8) == 0 ? R"({"end": 3})" : R"({"add": 1})");
          break;
      }
    }
    (void)cluster.cancel(*job);
    ASSERT_TRUE(cluster.run_until([&] { return cluster.final(*job); }, 120s));
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ranks_running().empty(); }, 60s));
  });
}

// The journal fails, users wish meanwhile, and the controller dies soon.
TEST(ProgramsSimulation, AWishThatIsAnsweredOutlivesTheController_CC6) {
  for_seeds(20, [](std::uint64_t seed) {
    SimulatedCluster cluster(seed);
    const auto job = two_counters(cluster);
    ASSERT_TRUE(job) << render(job.error());
    Rng rng(derive_seed(seed, "wishes"));
    auto& executor = cluster.executor();
    for (int i = 0; i < 10; ++i) {
      const auto wanted = 1 + static_cast<std::int32_t>(rng.below(4));
      cluster.disk().remember_fails_until = executor.now() + Duration(rng.below(4'000'000'000));
      executor.at(executor.now() + Duration(rng.below(4'000'000'000)),
                  [&cluster] { cluster.crash_controller(100ms); });
      const auto scaled = cluster.scale(*job, {kUsersProgram}, wanted);
      cluster.run_for(6s);
      for (const JobRecord& now : cluster.view().jobs)
        EXPECT_TRUE(!scaled || now.desired.at({kUsersProgram}) == wanted) << i;
    }
    ASSERT_TRUE(cluster.cancel(*job));
    ASSERT_TRUE(cluster.run_until([&] { return cluster.final(*job); }, 120s));
    EXPECT_TRUE(cluster.run_until([&] { return cluster.ranks_running().empty(); }, 60s));
  });
}

}  // namespace
}  // namespace tandem::controller
