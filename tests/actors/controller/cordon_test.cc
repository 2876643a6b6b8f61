// Nodes that are cordoned and drained: who stays, who moves and how, and what a later controller
// knows.
#include "actors/controller/cordon.h"

#include <chrono>

#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

std::string node_of(const World& world, const std::string& actor) {
  return world.record(actor).ranks.front().node;
}

// Two nodes, each of which holds a whole job of a learner, two rollouts and a reward; all of it is
// ready on one of them.
class TwoNodes : public testing::Test {
 protected:
  TwoNodes() {
    world.node("a", 4);
    world.node("b", 4);
    job = world.submit(shape_of(1, 2));
    world.all_ready(job);
    home = node_of(world, learner());
    other = home == "a" ? "b" : "a";
  }
  std::string learner() const { return job + "/learner/0"; }
  std::string rollout() const { return job + "/rollout/0"; }
  // Plays the exchange and the agents: every actor that is to drain has drained, and then ends.
  void finish_drains() {
    for (const TellExchange& tell : std::exchange(world.told[job], {}))
      if (const auto* drain = std::get_if<messages::DrainActor>(&tell.message))
        world.must(messages::ActorDrained{job, drain->who});
    world.obey();
  }
  std::size_t alive_on(const std::string& node) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(world.alive, [&](const auto& rank) { return rank.second == node; }));
  }

  World world;
  std::string job, home, other;
};

TEST_F(TwoNodes, ACordonKeepsWhatRunsAndTakesNothingNew) {
  world.must(CordonNode{home, "a fan is loud"});
  EXPECT_EQ(alive_on(home), 4u);
  EXPECT_EQ(world.state_of(learner()), ActorState::kReady);
  world.die(rollout());
  world.now = world.now + 10s;
  world.must(Tick{});
  EXPECT_EQ(node_of(world, rollout()), other) << "a restart is a new actor to the node";
  EXPECT_EQ(world.core.nodes().at(home).cordoned, "a fan is loud");
}

TEST_F(TwoNodes, ADrainLetsEachActorFinishAndMovesItWithoutADeath) {
  const Incarnation before = world.record(learner()).incarnation;
  world.must(CordonNode{home, "new driver", true});
  EXPECT_EQ(count_told<messages::DrainActor>(world, job), 4u);
  EXPECT_EQ(world.state_of(learner()), ActorState::kDraining);
  EXPECT_NE(scheduler::message(world.record(learner()).status.reason, world.now).find("checkpoint"),
            std::string::npos);
  EXPECT_TRUE(world.told_to_end.empty()) << "nobody is ended before its work is done";
  finish_drains();
  EXPECT_EQ(alive_on(home), 0u);
  EXPECT_EQ(alive_on(other), 4u);
  EXPECT_GT(world.record(learner()).incarnation, before);
  EXPECT_EQ(world.core.nodes().at(home).leased, scheduler::Resources{});
  world.all_ready(job);
  for (const auto& [name, actor] : world.core.jobs().at(job).actors) {
    EXPECT_EQ(world.core.jobs().at(job).ladder.restarts_of(name), 0) << name;
    EXPECT_EQ(actor.crash_loop.deaths, 0) << name;
  }
}

TEST_F(TwoNodes, AnActorThatDiesWhileItDrainsHasMovedAllTheSame) {
  world.must(CordonNode{home, "new driver", true});
  world.die(rollout());
  EXPECT_EQ(world.state_of(rollout()), ActorState::kStarting);
  EXPECT_EQ(node_of(world, rollout()), other);
  EXPECT_EQ(world.core.jobs().at(job).ladder.restarts_of(rollout()), 0);
}

TEST_F(TwoNodes, AnActorThatCannotWorkAnywhereFailsAndDoesNotMove) {
  world.must(CordonNode{home, "new driver", true});
  const Incarnation life = world.record(rollout()).incarnation;
  world.must(messages::RankFailed{rollout(), life, 0, "damaged", ErrorCode::kInvalid});
  world.die(rollout());
  EXPECT_EQ(world.state_of(rollout()), ActorState::kFailed);
  EXPECT_STREQ(world.reason(rollout()), "JobFailed");
  EXPECT_EQ(count_told<messages::EndJob>(world, job), 1u);
}

TEST_F(TwoNodes, AnActorThatIsNotWantedAnyMoreDoesNotComeBack) {
  world.must(CordonNode{home, "new driver", true});
  world.must(ScaleRole{job, messages::Role::kRollout, 1});
  finish_drains();
  EXPECT_FALSE(world.core.jobs().at(job).actors.contains(job + "/rollout/1"));
  EXPECT_EQ(alive_on(other), 3u);
}

TEST_F(TwoNodes, ADrainOfAJobThatEndsMovesNothing) {
  world.must(CordonNode{home, "new driver", true});
  world.must(messages::JobEnded{job, messages::JobOutcome::kSucceeded, "done"});
  finish_drains();
  EXPECT_EQ(world.state(job), JobState::kSucceeded);
  EXPECT_TRUE(world.alive.empty());
}

TEST_F(TwoNodes, AHostThatIsToEndIsDrainedAndTheNextOfItsNameIsUsed) {
  world.node_leaves(home);
  EXPECT_TRUE(world.core.nodes().at(home).leaving);
  EXPECT_EQ(count_told<messages::DrainActor>(world, job), 4u);
  world.node_leaves(home);  // it says so in each introduction
  EXPECT_EQ(count_told<messages::DrainActor>(world, job), 4u) << "once";
  finish_drains();
  EXPECT_EQ(alive_on(home), 0u);
  EXPECT_EQ(alive_on(other), 4u);
  world.must(NodeDown{home, world.nodes.at(home).incarnation});
  world.agent_back(home);
  const std::string next = world.submit(shape_of(1, 2));
  EXPECT_EQ(world.state(next), JobState::kStarting);
  EXPECT_EQ(alive_on(home), 4u) << "there is room on it again";
}

TEST_F(TwoNodes, ACordonOfAPersonOutlivesAHostThatIsToEnd) {
  world.must(CordonNode{home, "a fan is loud"});
  world.node_leaves(home);
  finish_drains();
  EXPECT_EQ(alive_on(home), 0u);
  world.must(NodeDown{home, world.nodes.at(home).incarnation});
  world.agent_back(home);
  EXPECT_EQ(world.core.nodes().at(home).cordoned, "a fan is loud");
}

TEST(Cordon, WhatFitsNowhereElseWaitsAndSaysWhy) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1));
  const std::string learner = job + "/learner/0";
  world.must(CordonNode{"a", "new driver", true});  // its actors are starting
  world.obey();
  EXPECT_TRUE(world.alive.empty());
  EXPECT_EQ(world.state_of(learner), ActorState::kQueued);
  EXPECT_STREQ(world.reason(learner), "WaitingForCapacity");
  EXPECT_NE(scheduler::message(world.record(learner).status.reason, world.now).find("cordoned: a"),
            std::string::npos);
  const std::string queued = world.submit(shape_of(1));
  EXPECT_EQ(world.state(queued), JobState::kQueued) << "it is not refused: a cordon may end";
  world.must(UncordonNode{"a"});
  EXPECT_EQ(world.state_of(learner), ActorState::kStarting);
}

TEST(Cordon, AProgramAnswersBeforeItMoves) {
  World world;
  world.node("a", 2);
  world.node("b", 2);
  const std::string job = world.submit(actors_alone(1));
  world.all_ready(job);
  const std::string counter = job + "/counter/0", home = node_of(world, counter);
  world.must(CordonNode{home, "new driver", true});
  ASSERT_EQ(world.told_to_drain.size(), 1u);
  world.exit_0(counter);
  EXPECT_EQ(world.state_of(counter), ActorState::kStarting) << "it was told to go, and is wanted";
  EXPECT_NE(node_of(world, counter), home);
}

TEST(Cordon, OutlivesTheNodesAgentAndTheController) {
  World world;
  world.node("a", 4);
  world.must(CordonNode{"a", "new driver"});
  world.must(NodeDown{"a", world.nodes.at("a").incarnation});
  world.node("a", 4);
  EXPECT_TRUE(world.core.nodes().at("a").cordoned);
  World later(2, world.remembered);
  later.node("a", 4);
  EXPECT_EQ(later.core.nodes().at("a").cordoned, "new driver");
  const std::string job = later.submit(shape_of(1));
  EXPECT_EQ(later.state(job), JobState::kQueued);
  later.must(UncordonNode{"a"});
  EXPECT_EQ(later.state(job), JobState::kStarting);
  EXPECT_TRUE(later.remembered.cordoned().empty());
}

TEST(Cordon, ANodeThatIsNotThereIsSaid) {
  World world;
  world.node("a", 4);
  for (const auto& refused :
       {world.take(CordonNode{"gpu-7", "x", true}), world.take(UncordonNode{"gpu-7"})}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  }
  world.must(UncordonNode{"a"});  // it is not cordoned, which is what was asked for
}

}  // namespace
}  // namespace tandem::controller
