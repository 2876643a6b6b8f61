// A job that chooses the number of its rollouts itself, the users who take that over, and rollouts
// that are preempted.
//
// Tests actors/controller/autoscaling.h, actors/controller/allocation.h,
// actors/controller/stopping.h.
#include "actors/controller/autoscaling.h"

#include <algorithm>
#include <chrono>

#include "tests/actors/controller/taken_up.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;
using messages::Role;

// 13 rollouts match its trainer (tests/scheduler/fleet/autoscale_test.cc).
messages::FleetMeasured measured(const std::string& job, double trainer_idle) {
  messages::FleetMeasured figures{.job = job};
  figures.rates = {.steps = 32,
                   .seconds = 640,
                   .rollouts = {{.actor = job + "/rollout/0", .tokens_per_s = 4000}},
                   .step_seconds = 20,
                   .step_tokens = 512 * 1536.0,
                   .completions_per_step = 512,
                   .trainer_idle_fraction = trainer_idle};
  return figures;
}

class Autoscaled : public testing::Test {
 protected:
  Autoscaled() {
    world.node("a", 40);
    JobShape shape = shape_of(1, 2);
    shape.autoscale = {.min = 1, .max = 16, .cooldown = 300s};
    job = world.submit(shape);
    world.all_ready(job);
    world.must(messages::JobProgress{job, messages::JobPhase::kRunning, ""});
  }
  std::int32_t rollouts() const { return world.core.jobs().at(job).desired.at(Role::kRollout); }
  std::int32_t rewards() const { return world.core.jobs().at(job).desired.at(Role::kReward); }
  const Autoscaling& scaling() const { return world.core.jobs().at(job).autoscaling; }
  std::size_t said(const std::string& words) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        world.announced,
        [&](const Announce& event) { return event.message.find(words) != std::string::npos; }));
  }
  void scale(std::int32_t replicas) { world.must(ScaleRole{job, Role::kRollout, replicas}); }
  Result<void> automatic(const Role& role = Role::kRollout) {
    return world.take(ScaleRole{.job = job, .role = role, .automatic = true});
  }

  World world;
  std::string job;
};

TEST_F(Autoscaled, FiguresBecomeRolloutsAndAnEvent) {
  world.must(measured(job, 0.8));
  EXPECT_EQ(rollouts(), 13);
  EXPECT_EQ(world.alive.size(), 15U);
  EXPECT_EQ(said("autoscale: rollout 2 -> 13: trainer idle 80 % over 32 steps, 13 would match"),
            1U);
  ASSERT_TRUE(scaling().last);
  EXPECT_EQ(scaling().last->from, 2);
  world.all_ready(job);
  for (int i = 0; i < 5; ++i) world.must(measured(job, 0.01));
  EXPECT_EQ(rollouts(), 13);
  EXPECT_EQ(said("autoscale: rollout stays 13"), 1U) << "a reason is said when it is another one";
}

TEST_F(Autoscaled, NothingWhileTheTrainerIsInTrouble) {
  auto skips = measured(job, 0.8);
  skips.skipped_in_row = 1;
  world.must(skips);
  EXPECT_EQ(rollouts(), 2);
  EXPECT_EQ(said("skips steps"), 1U);
  world.die(job + "/learner/0");
  world.must(measured(job, 0.8));
  EXPECT_EQ(rollouts(), 2);
  EXPECT_EQ(scaling().newest->hold, scheduler::AutoscaleHold::kTrainer);
}

// A job with two rollouts, of a CPU each, that runs on a node with so many CPUs and nothing else.
std::string run_alone(World& world, double cpus) {
  world.node("a", cpus);
  JobShape shape = shape_of(1, 2);
  shape.autoscale = {.min = 1, .max = 16};
  std::string job = world.submit(shape);
  world.all_ready(job);
  world.must(messages::JobProgress{job, messages::JobPhase::kRunning, ""});
  return job;
}
std::int32_t rollouts_of(const World& world, const std::string& job) {
  return world.core.jobs().at(job).desired.at(Role::kRollout);
}

TEST_F(Autoscaled, RoomOfActorsThatRestartIsNotFree_AS2) {
  World small;
  const std::string tight = run_alone(small, 8);
  small.die(tight + "/reward/0");
  ASSERT_EQ(small.state_of(tight + "/reward/0"), ActorState::kBackoff);
  small.must(measured(tight, 0.8));
  EXPECT_EQ(rollouts_of(small, tight), 6);
}

TEST_F(Autoscaled, RoomForWhichAQueuedJobWaitsIsNotFree_AS2) {
  World small;
  const std::string tight = run_alone(small, 8);
  const std::string large = small.submit(shape_of(1, 4));
  ASSERT_EQ(small.core.jobs().at(large).status.state, scheduler::JobState::kQueued);
  small.must(measured(tight, 0.8));
  EXPECT_EQ(rollouts_of(small, tight), 2);
  EXPECT_TRUE(small.core.jobs().at(tight).autoscaling.newest->at_limit);
  small.must(CancelJob{large});
  small.must(measured(tight, 0.8));
  EXPECT_EQ(rollouts_of(small, tight), 6);
}

TEST_F(Autoscaled, AQueuedJobThatNoNodeCouldHoldKeepsNoRoom) {
  World small;
  const std::string tight = run_alone(small, 8);
  small.node("b", 40);
  const std::string large = small.submit(shape_of(1, 44));  // both nodes, if nothing else ran
  ASSERT_EQ(small.core.jobs().at(large).status.state, scheduler::JobState::kQueued);
  small.must(measured(tight, 0.8));
  EXPECT_EQ(rollouts_of(small, tight), 2);
  EXPECT_NE(small.core.jobs().at(tight).autoscaling.newest->reason.find("goes to " + large),
            std::string::npos);
  small.node_lost("b");
  World scaled = small;
  small.must(measured(tight, 0.8));
  EXPECT_EQ(rollouts_of(small, tight), 6);

  // By the numbers that are wanted now it could start, once another job has ended.
  scaled.must(ScaleRole{large, Role::kRollout, 6});
  scaled.must(measured(tight, 0.8));
  EXPECT_EQ(rollouts_of(scaled, tight), 2);
}

TEST_F(Autoscaled, TheRoomOfTheNodesIsALimit) {
  World small;
  const std::string tight = run_alone(small, 6);
  small.must(measured(tight, 0.8));
  EXPECT_EQ(small.core.jobs().at(tight).desired.at(Role::kRollout), 4);
  EXPECT_TRUE(small.core.jobs().at(tight).autoscaling.newest->at_limit);
  small.all_ready(tight);
  small.must(measured(tight, 0.6));
  EXPECT_EQ(small.core.jobs().at(tight).desired.at(Role::kRollout), 4);
}

TEST_F(Autoscaled, OnlyEvaluationsThatTakeMuchOfAWindowHoldItUp) {
  messages::FleetMeasured figures = measured(job, 0.8);
  figures.evaluation_fraction = 0.3;
  world.must(figures);
  EXPECT_EQ(rollouts(), 2);
  EXPECT_EQ(said("evaluations ran for a large part of the window"), 1U);
  figures.evaluation_fraction = 0.2;
  world.must(figures);
  EXPECT_EQ(rollouts(), 13);
}

TEST_F(Autoscaled, ANumberOfAUserTurnsItOffAndAutoOnAgain) {
  scale(3);
  EXPECT_EQ(
      said("scale rollout=3; autoscale is off, until `tandem scale " + job + " rollout=auto`"), 1U);
  world.all_ready(job);
  world.must(measured(job, 0.8));
  EXPECT_EQ(rollouts(), 3);
  ASSERT_TRUE(automatic());
  world.must(measured(job, 0.8));
  EXPECT_EQ(rollouts(), 13);
  const auto reward = automatic(Role::kReward);
  ASSERT_FALSE(reward);
  EXPECT_EQ(reward.error().code, ErrorCode::kInvalid);
}

TEST_F(Autoscaled, AJobWithoutLimitsCannotBeAutomatic) {
  const std::string plain = world.submit(shape_of(1));
  world.all_ready(plain);
  const auto refused =
      world.take(ScaleRole{.job = plain, .role = Role::kRollout, .automatic = true});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().help.find("pools.rollout.autoscale"), std::string::npos);
}

TEST_F(Autoscaled, AJobOfActorsAloneHasNoRolloutsToScale) {
  const std::string plain = world.submit(actors_alone(2));
  const auto refused =
      world.take(ScaleRole{.job = plain, .role = Role::kRollout, .automatic = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "cannot scale rollout to auto: the job has no such role");
  EXPECT_EQ(refused.error().help, "possible: counter=N");
}

TEST_F(Autoscaled, ARollbackGivesBackTheAllocationOnceAndTurnsItOff) {
  const auto nothing = world.take(RollBack{job});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::kInvalid);
  world.must(measured(job, 0.8));
  world.must(RollBack{job});
  EXPECT_EQ(rollouts(), 2);
  EXPECT_FALSE(scaling().on);
  EXPECT_EQ(said("rolled back: rollout 13 -> 2; autoscale is off"), 1U);
  EXPECT_FALSE(world.take(RollBack{job})) << "one level";
}

TEST_F(Autoscaled, ARollbackUndoesAllRolesOfOneRequest) {
  scale(4);
  world.must(ScaleRole{job, Role::kRollout, 5});
  world.must(ScaleRole{.job = job, .role = Role::kReward, .replicas = 2, .continues = true});
  world.must(RollBack{job});
  EXPECT_EQ(rollouts(), 4);
  EXPECT_EQ(rewards(), 1);
}

TEST_F(Autoscaled, ARollbackUndoesARequestWhoseFirstRoleChangesNothing) {
  world.must(ScaleRole{job, Role::kReward, 1});
  EXPECT_TRUE(scaling().before.empty());
  world.must(ScaleRole{.job = job, .role = Role::kRollout, .replicas = 5, .continues = true});
  world.must(RollBack{job});
  EXPECT_EQ(rollouts(), 2);
  ASSERT_TRUE(automatic());
  world.must(ScaleRole{.job = job, .role = Role::kReward, .replicas = 2, .continues = true});
  world.must(RollBack{job});
  EXPECT_EQ(rewards(), 1);
}

TEST_F(Autoscaled, ARollbackThatChangesNoNumberIsSaidAllTheSame) {
  world.must(ScaleRole{job, Role::kReward, 2});
  world.must(ScaleRole{.job = job, .role = Role::kReward, .replicas = 1, .continues = true});
  world.must(RollBack{job});
  EXPECT_EQ(said("rolled back; autoscale is off"), 1U);
}

TEST_F(Autoscaled, TheNextControllerKnowsWhoDecidesAndWhatWasBefore_CC5) {
  world.must(measured(job, 0.8));
  World after(2, world.remembered);
  after.must(jobs_of(world));
  const Autoscaling& kept = after.core.jobs().at(job).autoscaling;
  EXPECT_TRUE(kept.on);
  EXPECT_EQ(kept.before.at(Role::kRollout), 2);
  ASSERT_TRUE(kept.state.change);
  EXPECT_EQ(kept.state.change->at, world.now) << "AS-1 holds over the death of a controller";
  EXPECT_EQ(kept.state.raised, scaling().state.raised);
  ASSERT_TRUE(kept.state.raised);
  EXPECT_EQ(kept.state.raised->rollouts, 2);

  scale(5);
  World later(3, world.remembered);
  later.must(jobs_of(world));
  EXPECT_FALSE(later.core.jobs().at(job).autoscaling.on);
  EXPECT_EQ(later.core.jobs().at(job).autoscaling.before.at(Role::kRollout), 13);
  EXPECT_EQ(later.core.jobs().at(job).desired.at(Role::kRollout), 5);
}

TEST_F(Autoscaled, TheNextControllerKnowsWhatRolloutsDeliverThoughNothingChanged_CC5) {
  scale(16);  // max
  ASSERT_TRUE(automatic());
  world.all_ready(job);
  auto figures = measured(job, 0.3);
  figures.starved_fraction = 0.28;
  world.must(figures);
  ASSERT_EQ(rollouts(), 16);
  ASSERT_LT(scaling().state.delivered.share, 0.9);
  World after(2, world.remembered);
  after.must(jobs_of(world));
  EXPECT_EQ(after.core.jobs().at(job).autoscaling.state.delivered, scaling().state.delivered);
}

TEST_F(Autoscaled, TheNextControllerKnowsWhatRolloutsDeliver_CC5) {
  auto figures = measured(job, 0.9);  // half of what the two rollouts' engines give arrives
  figures.starved_fraction = 0.85;
  world.must(figures);
  ASSERT_LT(scaling().state.delivered.share, 1);
  World after(2, world.remembered);
  after.must(jobs_of(world));
  EXPECT_EQ(after.core.jobs().at(job).autoscaling.state.delivered, scaling().state.delivered);
}

TEST_F(Autoscaled, FiguresOfAJobThatEndsOrIsGoneChangeNothing) {
  world.must(CancelJob{job});
  world.must(measured(job, 0.8));
  EXPECT_EQ(rollouts(), 2);
  world.must(measured("nobody-1", 0.8));
}

class Preemptible : public testing::Test {
 protected:
  Preemptible() {
    world.node("a", 8);
    JobShape shape = shape_of(1, 2);
    shape.preemptible = {Role::kRollout};
    job = world.submit(shape);
    world.all_ready(job);
    rollout = job + "/rollout/1";
    pass(2min);
  }
  void pass(Duration time) { world.now = world.now + time; }
  // The one that waits starts again, once its pause is over.
  void end_pause(World& of) {
    EXPECT_EQ(of.state_of(rollout), ActorState::kBackoff);
    EXPECT_STREQ(of.reason(rollout), "Preempted");
    EXPECT_EQ(scheduler::deadline_of(of.record(rollout).status.reason),
              of.record(rollout).restart_at);
    of.must(Tick{});
    EXPECT_EQ(of.state_of(rollout), ActorState::kBackoff);
    of.now = of.record(rollout).restart_at.value();
    of.must(Tick{});
    EXPECT_EQ(of.state_of(rollout), ActorState::kStarting);
  }
  void preempt(const std::string& actor) {
    world.must(messages::RankPreempted{actor, world.record(actor).incarnation, 0});
  }
  // Of each DrainActor that the exchange was sent: whether the actor returns.
  std::vector<bool> returns() const {
    std::vector<bool> told;
    for (const TellExchange& tell : world.told.at(job))
      if (const auto* const drain = std::get_if<messages::DrainActor>(&tell.message))
        told.push_back(drain->returns);
    return told;
  }
  std::int32_t restarts() const { return world.core.jobs().at(job).ladder.restarts_of(rollout); }

  World world;
  std::string job, rollout;
};

TEST_F(Preemptible, ARolloutThatIsToldToEndDrainsAndStartsAgainWithoutACount) {
  const Incarnation before = world.record(rollout).incarnation;
  preempt(rollout);
  EXPECT_EQ(world.state_of(rollout), ActorState::kDraining);
  ASSERT_EQ(count_told<messages::DrainActor>(world, job), 1U);
  const auto& told = std::get<messages::DrainActor>(world.told[job].back().message);
  EXPECT_LT(std::chrono::milliseconds(told.deadline_ms), messages::kPreemptionGrace);
  world.must(messages::ActorDrained{job, {rollout, before}});
  world.obey();
  EXPECT_EQ(world.state_of(rollout), ActorState::kStarting);
  EXPECT_NE(world.record(rollout).incarnation, before);
  EXPECT_EQ(restarts(), 0);
  EXPECT_FALSE(world.record(rollout).preempted);
}

TEST_F(Preemptible, OneThatIsKilledWhileItDrainsIsNoDeathEither) {
  preempt(rollout);
  world.die(rollout);
  EXPECT_EQ(world.state_of(rollout), ActorState::kStarting);
  EXPECT_EQ(restarts(), 0);
}

TEST_F(Preemptible, AnEndByASignalFromOutsideIsNoDeathAndACrashIsOne) {
  for (int i = 0; i < 20; ++i) {
    world.end({.id = {rollout, world.record(rollout).incarnation, 0}, .signal = 15});
    EXPECT_EQ(world.state_of(rollout), ActorState::kStarting) << i;
    world.ready(rollout);
    pass(2min);
  }
  EXPECT_EQ(restarts(), 0);
  world.end({.id = {rollout, world.record(rollout).incarnation, 0}, .signal = 11});
  EXPECT_EQ(world.state_of(rollout), ActorState::kBackoff);
  EXPECT_EQ(restarts(), 1);
}

TEST_F(Preemptible, OneThatEndsEachTimeAsSoonAsItIsReadyStartsAgainAfterAPauseWithoutACount) {
  world.exit_0(rollout);
  EXPECT_EQ(world.state_of(rollout), ActorState::kStarting) << "it was ready for long";
  for (int i = 0; i < 20; ++i) {
    world.ready(rollout);
    pass(59s);
    world.exit_0(rollout);
    end_pause(world);
  }
  EXPECT_EQ(restarts(), 0);
}

TEST_F(Preemptible, OneThatIsNotReadyYetEndsAtOnceAndStartsAgainWithoutACount) {
  world.exit_0(rollout);
  for (const ActorState state : {ActorState::kStarting, ActorState::kInitializing}) {
    const node::RankId rank{rollout, world.record(rollout).incarnation, 0};
    if (state == ActorState::kInitializing) world.must(RankConnected{rank});
    ASSERT_EQ(world.state_of(rollout), state);
    preempt(rollout);
    EXPECT_EQ(world.state_of(rollout), ActorState::kStopping);
    EXPECT_TRUE(world.told_to_end.contains(rank));
    world.obey();
    end_pause(world);
  }
  EXPECT_EQ(restarts(), 0);
}

TEST_F(Preemptible, TheNextControllerDoesNotCountTheEndOfOneThatDrained_CC5) {
  world.must(ExchangeOpened{job, {"ipc:///s2"}});
  preempt(rollout);
  World after(2, world);
  TakeUpJobs taken = jobs_of(world);
  taken.jobs.front().follows = true;
  after.must(taken);
  after.node_back("a");
  after.die(rollout);
  end_pause(after);
  EXPECT_EQ(after.core.jobs().at(job).ladder.restarts_of(rollout), 0);
}

TEST_F(Preemptible, ALearnerIsNot) {
  preempt(job + "/learner/0");
  EXPECT_EQ(world.state_of(job + "/learner/0"), ActorState::kReady);
}

TEST_F(Preemptible, ScaledAwayWhileItDrainsItDoesNotComeBack) {
  preempt(rollout);
  EXPECT_EQ(returns(), (std::vector{true}));
  world.must(ScaleRole{job, Role::kRollout, 1});
  EXPECT_EQ(returns(), (std::vector{true, false})) << "its exchange hears that it stays away";
  world.die(rollout);
  EXPECT_FALSE(world.core.jobs().at(job).actors.contains(rollout));
}

TEST_F(Preemptible, ScaledAwayWhileItWaitsForRoomItsExchangeHearsThatItStaysAway) {
  preempt(rollout);
  world.must(CordonNode{.node = "a", .why = "test"});
  world.die(rollout);
  EXPECT_EQ(world.state_of(rollout), ActorState::kQueued);
  world.must(ScaleRole{job, Role::kRollout, 1});
  EXPECT_EQ(returns(), (std::vector{true, false}));
}

}  // namespace
}  // namespace tandem::controller
