// A controller that lives for a week of virtual time, in which jobs are submitted, train and end,
// nodes come and go, users' actors die and are asked, and clients look at everything: what is live
// in memory after the seventh day is what was live after the first.
//
// Tests actors/controller/controller.h, actors/controller/upkeep.h.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "actors/api/cluster_picture.h"
#include "runtime/base/log.h"
#include "tests/actors/controller/job_shapes.h"
#include "tests/actors/controller/scenario.h"
#include "tests/allocations.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

const bool kWeeksAreSilent = (log::mute(), true);

constexpr int kHoursOfDay = 24;

class Week {
 public:
  Week() : cluster_(1) {
    for (const char* const name : {"a", "b"}) cluster_.add_node(name, 16);
    cluster_.run_for(1s);
    service_ = *cluster_.submit_actors(counters(3));
    cluster_.run_for(5s);
  }

  // Twelve jobs, twelve nodes, twelve deaths.
  void pass_hour() {
    trains();
    for (int i = 0; i < 11; ++i) is_cancelled();
    for (int i = 0; i < 12; ++i) node_comes_and_goes();
    for (int i = 0; i < 12; ++i) dies();
    const auto answer = cluster_.ask_program(service_ + "/counter/1", R"({"add": 1})");
    answered_ += answer.has_value();
    look();
    const Time next = hour_ + 1h;
    hour_ = next;
    if (cluster_.executor().now() < next) cluster_.run_for(next - cluster_.executor().now());
    cluster_.forget_ended();
  }
  // What is live, and what a client sees.
  std::size_t live() {
    const ClusterView view = cluster_.view();
    jobs = view.jobs.size();
    nodes = view.nodes.size();
    return test::allocated_bytes();
  }

  std::size_t jobs = 0, nodes = 0;
  int trained() const { return trained_; }
  int answered() const { return answered_; }
  std::uint64_t steps() { return cluster_.executor().steps(); }

 private:
  static JobShape counters(std::int32_t replicas) {
    JobShape shape = actors_alone(replicas);
    shape.programs.begin()->second.command = {kUsersProgram};
    return shape;
  }
  void trains() {
    SimulatedJob job = random_job(++seed_);
    job.exchange.budget.steps_total = 3;
    job.replicas = {{messages::Role::kRollout, 1}, {messages::Role::kReward, 1}};
    const auto id = cluster_.submit(job);
    if (!id) return;
    run_to_end(cluster_, *id);
    trained_ += cluster_.final_state(*id) == "Succeeded";
  }
  void is_cancelled() {
    const auto id = cluster_.submit_actors(counters(2));
    ASSERT_TRUE(id);
    cluster_.run_for(2s);
    ASSERT_TRUE(cluster_.cancel(*id));
    ASSERT_TRUE(cluster_.run_until([&] { return cluster_.final(*id); }, 2min));
  }
  void node_comes_and_goes() {
    const std::string name = "spot-" + std::to_string(++spot_);
    cluster_.add_node(name, 1);
    cluster_.run_for(3s);
    cluster_.kill_node(name);
    cluster_.run_for(3s);
  }
  void dies() {
    for (const node::RankId& rank : cluster_.ranks_running())
      if (rank.actor.starts_with(service_ + "/counter/0")) cluster_.kill(rank);
    cluster_.run_for(2min);
  }
  void look() {
    const api::Picture picture{.cluster = cluster_.view(), .reports = {}};
    for (const char* const kind : {"jobs", "actors", "nodes"}) (void)list(picture, kind);
  }

  SimulatedCluster cluster_;
  std::string service_;
  Time hour_{};
  std::uint64_t seed_ = 0;
  int spot_ = 0, trained_ = 0, answered_ = 0;
};

TEST(ASimulatedWeek, LeavesTheMemoryFlat) {
  Week week;
  std::size_t after_day[8] = {};
  for (int day = 1; day <= 7; ++day) {
    for (int hour = 0; hour < kHoursOfDay; ++hour) week.pass_hour();
    after_day[day] = week.live();
    std::printf("after day %d: %zu KiB live, %zu jobs and %zu nodes shown\n", day,
                after_day[day] / 1024, week.jobs, week.nodes);
    if (day > 1) {
      EXPECT_LE(after_day[day], after_day[1] * 11 / 10 + (256 << 10));
    }
    EXPECT_LE(week.jobs, kEndedJobsKept + 2) << "LU-2";
    EXPECT_LE(week.nodes, kLostNodesKept + 3) << "LU-2";
  }
  std::printf("%llu steps of the simulation\n", static_cast<unsigned long long>(week.steps()));
  EXPECT_GT(week.trained(), 7 * kHoursOfDay / 2);
  EXPECT_EQ(week.answered(), 7 * kHoursOfDay);
}

}  // namespace
}  // namespace tandem::controller
