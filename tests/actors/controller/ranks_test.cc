// Ranks that lose their link while their controller lives, and ranks that lose their agent.
//
// Tests actors/controller/ranks.h, nodes.h, actor_end.h.
#include "actors/controller/ranks.h"

#include <chrono>
#include <cstdint>

#include "actors/api/wait_deadlines.h"
#include "actors/controller/views.h"
#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;
using scheduler::ActorState;

// A job with a program of a user's own, all of whose actors are ready.
class ReadyJob : public testing::Test {
 protected:
  ReadyJob() {
    world.node("a", 8);
    JobShape shape = shape_of(1);
    add_program(shape, "counter", 1);
    job = world.submit(shape);
    world.all_ready(job);
  }

  World world;
  std::string job;
};

// A rank whose link is lost, and which does not end by itself.
class Unlinked : public ReadyJob {
 protected:
  node::RankId lose_link(const std::string& role) {
    const std::string actor = job + "/" + role + "/0";
    const node::RankId id{actor, world.record(actor).incarnation, 0};
    world.must(RankHung{id, 0});
    EXPECT_TRUE(world.told_to_end.empty()) << "its end, which may be under way, says why";
    return id;
  }
};

TEST_F(Unlinked, ItsProcessMayEndBeforeItIsEnded) {
  const node::RankId id = lose_link("rollout");
  world.now = world.now + 2s;
  world.must(Tick{});
  world.die(id);
  EXPECT_EQ(world.state_of(id.actor), ActorState::kBackoff);
  EXPECT_TRUE(world.told_to_end.empty());
}

TEST_F(Unlinked, ItIsEndedIfItLivesOn) {
  for (const char* role : {"rollout", "counter"}) {
    SCOPED_TRACE(role);
    const node::RankId id = lose_link(role);
    world.now = world.now + 4s;
    world.must(Tick{});
    EXPECT_EQ(world.told_to_end, std::set{id});
    world.obey();
  }
}

// Messages of its lost link are missing, which only a new exchange asks for again.
TEST_F(Unlinked, ARankThatTrainsIsEndedWhenItComesBackAndAProgramIsNot) {
  world.must(RankConnected{lose_link("counter")});
  EXPECT_TRUE(world.told_to_end.empty());
  const node::RankId id = lose_link("rollout");
  world.must(RankConnected{id});
  EXPECT_EQ(world.told_to_end, std::set{id});
}

// The agent of the node has died, and nobody else.
class NoAgent : public ReadyJob {
 protected:
  enum class Begin { kReady, kNoAgent };
  explicit NoAgent(Begin begin = Begin::kNoAgent) {
    world.must(messages::JobProgress{job, messages::JobPhase::kRunning, "training"});
    lived = world.alive;
    if (begin == Begin::kNoAgent) world.must(NodeDown{"a", world.nodes.at("a").incarnation});
  }
  node::RankId rank(const std::string& role) const {
    const std::string actor = job + "/" + role + "/0";
    return {actor, world.record(actor).incarnation, 0};
  }
  void pass(Duration time) {
    world.now = world.now + time;
    world.must(Tick{});
  }
  void lose_link(const node::RankId& id) { world.must(RankHung{id, 0}); }
  // The record of the actor as views have it.
  ActorRecord seen(const ViewPage& page, const std::string& actor) const {
    const ClusterView view = view_of(world.core, {}, page, world.now);
    for (const ShownActor& shown : view.actors)
      if (shown.actor.name == actor) return shown.actor;
    return view.jobs.at(0).actors.at(actor);
  }

  std::map<node::RankId, std::string> lived;
};

TEST_F(NoAgent, ItsLinkedRanksWorkOnAndTheNextAgentHasThem) {
  const std::size_t said = world.announced.size();
  world.must(NodeDown{"a", world.nodes.at("a").incarnation});  // of the process, and of the link
  EXPECT_EQ(world.announced.size(), said);
  pass(2min);
  EXPECT_EQ(world.state(job), JobState::kRunning);
  for (const auto& [id, node] : lived) EXPECT_EQ(world.state_of(id.actor), ActorState::kReady);
  EXPECT_EQ(count_told<messages::ActorDown>(world, job), 0u);
  const std::string actor = rank("rollout").actor;
  EXPECT_STREQ(world.reason(actor), "AgentLost");
  const std::string why = scheduler::message(world.record(actor).status.reason, world.now);
  EXPECT_NE(why.find("at most 180.0 s"), std::string::npos) << why;
  world.agent_back("a");
  EXPECT_STREQ(world.reason(actor), "Working");
  pass(10min);
  EXPECT_EQ(world.alive, lived);
  EXPECT_TRUE(world.told_to_end.empty() && world.links_cut.empty());
  world.die(rank("rollout"));
  EXPECT_EQ(world.state_of(job + "/rollout/0"), ActorState::kBackoff) << "it is watched again";
}

TEST_F(NoAgent, OneThatEndsMeanwhileIsGoneWithItsLink) {
  const node::RankId gone = rank("rollout");
  lose_link(gone);
  world.alive.erase(gone);
  pass(4s);
  EXPECT_EQ(world.state_of(gone.actor), ActorState::kBackoff);
  EXPECT_STREQ(world.reason(gone.actor), "Backoff");
  EXPECT_EQ(world.state_of(rank("learner").actor), ActorState::kReady);
  world.agent_back("a", {{.id = gone, .signal = 9}});
  pass(1min);
  EXPECT_GT(world.record(gone.actor).incarnation, gone.incarnation);
}

// One that hangs does not hear that its link is cut.
TEST_F(NoAgent, OneThatWasToldToEndIsWaitedForUntilAnAgentTellsOfIt_CC1) {
  world.node("b", 8);
  const node::RankId hung = rank("rollout");
  world.must(RankHung{hung, 60});
  lose_link(hung);
  pass(60s);
  EXPECT_EQ(world.state_of(hung.actor), ActorState::kStopping);
  world.told_to_end.clear();
  world.agent_back("a");
  EXPECT_EQ(world.told_to_end, std::set{hung});
  world.obey();
  EXPECT_EQ(world.state_of(hung.actor), ActorState::kBackoff);
}

TEST_F(NoAgent, OneThatWasToldToEndIsGivenUpAfterTheGrace) {
  const node::RankId hung = rank("rollout");
  world.must(RankHung{hung, 60});
  lose_link(hung);
  const Time until = *world.core.nodes().at("a").agent_until;
  EXPECT_EQ(until, world.now + node::kNodeGraceDefault);
  pass(node::kNodeGraceDefault - 1s);
  EXPECT_EQ(world.state_of(hung.actor), ActorState::kStopping);
  for (const auto& page : {ViewPage{.of = ViewOf::kJobs}, ViewPage{.of = ViewOf::kActors}})
    EXPECT_EQ(api::deadline_of(seen(page, hung.actor), {}), until) << "and who looks knows";
  pass(1s);
  EXPECT_EQ(world.state_of(hung.actor), ActorState::kBackoff);
}

TEST_F(NoAgent, OneThatWasToldToEndHasTheDeadlineOfItsKillOnceAnAgentIsHeard) {
  const node::RankId hung = rank("rollout");
  world.must(RankHung{hung, 60});
  pass(60s);
  world.agent_back("a");
  ASSERT_EQ(world.state_of(hung.actor), ActorState::kStopping);
  EXPECT_EQ(api::deadline_of(seen({}, hung.actor), {}), world.record(hung.actor).kill_deadline);
}

TEST_F(NoAgent, TheNextAgentTellsOfAnEndWhoseCauseNobodySaw) {
  const node::RankId gone = rank("counter");
  world.agent_back("a", {{.id = gone, .description = "ended, and how is not known"}});
  const std::string why = scheduler::message(world.record(gone.actor).status.reason, world.now);
  EXPECT_NE(why.find("how is not known"), std::string::npos) << why;
  EXPECT_EQ(world.state_of(gone.actor), ActorState::kBackoff) << "it is not taken for finished";
}

TEST_F(NoAgent, WithoutAnotherAgentTheirLinksAreCutAfterTheGrace) {
  pass(node::kNodeGraceDefault - 1s);
  EXPECT_TRUE(world.links_cut.empty());
  pass(1s);
  std::set<node::RankId> all;
  for (const auto& [id, node] : lived) all.insert(id);
  EXPECT_EQ(world.links_cut, all);
  EXPECT_EQ(world.state_of(rank("learner").actor), ActorState::kBackoff);
  EXPECT_EQ(world.state(job), JobState::kRunning) << "it waits for a node";
}

// A node that is lost as a whole: the ends of the links come in any order.
TEST_F(NoAgent, ANodeWhoseRanksAreSilentAsWellIsLost) {
  for (const auto& [id, node] : lived) lose_link(id);
  world.outlived = true;
  world.alive.clear();
  pass(4s);
  EXPECT_EQ(count_told<messages::ActorDown>(world, job), 3u);
  pass(10s);
  EXPECT_STREQ(world.reason(rank("learner").actor), "NodeLost");
}

// The host of a job is cut off: its agent and its ranks are silent, and their links last.
class CutOff : public NoAgent {
 protected:
  CutOff() : NoAgent(Begin::kReady) {
    for (const auto& [id, node] : lived) world.must(RankSilent{id});
    world.must(NodeSilent{"a", agent()});
  }
  Incarnation agent() const { return world.nodes.at("a").incarnation; }
  std::set<node::RankId> all() const {
    std::set<node::RankId> all;
    for (const auto& [id, node] : lived) all.insert(id);
    return all;
  }
  static constexpr Duration kLeft =
      node::kNodeGraceDefault + link::kGraceMargin - link::kRemotePeerTimeout;
};

TEST_F(CutOff, ItsRanksAreWaitedForAndGoOnWhenTheyAreHeardAgain) {
  world.node("b", 8);
  pass(2min);
  const std::string actor = rank("rollout").actor;
  EXPECT_EQ(world.state(job), JobState::kRunning);
  EXPECT_STREQ(world.reason(actor), "AgentLost");
  const std::string why = scheduler::message(world.record(actor).status.reason, world.now);
  EXPECT_NE(why.find("cannot be reached"), std::string::npos) << why;
  EXPECT_NE(why.find("at most 206.0 s"), std::string::npos) << why;
  EXPECT_EQ(count_told<messages::ActorSilent>(world, job), 3u);
  EXPECT_EQ(count_told<messages::ActorDown>(world, job), 0u);
  EXPECT_FALSE(world.core.nodes().at("a").up) << "it takes no new actor";
  world.must(NodeSilent{"a", agent(), false});
  EXPECT_EQ(world.nodes_asked, std::vector<std::string>{"a"});
  world.node_back("a");
  for (const auto& [id, node] : lived) world.must(RankSilent{id, false});
  EXPECT_EQ(count_told<messages::ActorSilent>(world, job), 6u);
  EXPECT_STREQ(world.reason(actor), "Working");
  pass(10min);
  EXPECT_EQ(world.alive, lived) << "CC-1: each is as it was";
  EXPECT_TRUE(world.told_to_end.empty() && world.links_cut.empty());
}

TEST_F(CutOff, WhoHasNotComeBackInTimeIsFencedAndStartedElsewhere) {
  world.node("b", 8);
  pass(kLeft - 1s);
  EXPECT_EQ(world.alive, lived);
  EXPECT_TRUE(world.links_cut.empty());
  pass(1s);
  EXPECT_EQ(world.links_cut, all());
  EXPECT_EQ(count_told<messages::ActorDown>(world, job), 3u);
  pass(1min);
  EXPECT_EQ(world.record(rank("learner").actor).ranks.at(0).node, "b");
  EXPECT_NE(world.state(job), JobState::kFailed);
}

// Its links end at the same time as the controller's patience, and may come first.
TEST_F(CutOff, TheEndOfItsLinksGivesItUpAsWell) {
  world.node("b", 8);
  pass(kLeft - 1s);
  world.must(NodeDown{"a", agent()});
  EXPECT_EQ(world.links_cut, all());
  pass(1min);
  EXPECT_EQ(world.record(rank("counter").actor).ranks.at(0).node, "b");
}

TEST_F(CutOff, AnotherAgentOfTheHostMayComeBackInPlaceOfTheSilentOne) {
  const Incarnation former = agent();
  pass(1min);
  world.agent_back("a");
  EXPECT_TRUE(world.nodes_refused.empty());
  EXPECT_TRUE(world.core.nodes().at("a").up);
  world.must(NodeDown{"a", former, true});
  for (const auto& [id, node] : lived) world.must(RankSilent{id, false});
  pass(10min);
  EXPECT_EQ(world.alive, lived);
  EXPECT_STREQ(world.reason(rank("learner").actor), "Working");
}

TEST_F(CutOff, ARankThatStaysSilentThoughItsAgentIsHeardIsEnded) {
  world.must(NodeSilent{"a", agent(), false});
  world.node_back("a");
  const node::RankId stopped = rank("rollout");
  for (const auto& [id, node] : lived)
    if (id != stopped) world.must(RankSilent{id, false});
  pass(kReportWait);
  EXPECT_EQ(world.told_to_end, std::set{stopped});
}

// As for a host whose power is gone: its user knows that nothing of it lives.
TEST_F(CutOff, ADrainedNodeIsNotWaitedForAndEndsWhatItStillHasWhenItIsBack) {
  world.node("b", 8);
  const std::map<node::RankId, std::string> on_a = lived;
  world.must(CordonNode{"a", "it burns", true});
  EXPECT_EQ(world.links_cut, all());
  pass(1min);
  EXPECT_EQ(world.record(rank("learner").actor).ranks.at(0).node, "b");
  world.outlived = true;
  world.alive.insert(on_a.begin(), on_a.end());
  world.must(NodeSilent{"a", agent(), false});
  world.node_back("a");
  EXPECT_EQ(world.told_to_end, all());
}

// Its ranks are linked and heard: they work on for as long.
TEST_F(NoAgent, AnAgentThatHangsIsWaitedForLikeOneThatIsCutOff) {
  world.agent_back("a");
  world.must(NodeSilent{"a", world.nodes.at("a").incarnation});
  pass(kReportWait);
  EXPECT_STREQ(world.reason(rank("learner").actor), "AgentLost");
  EXPECT_EQ(world.alive, lived);
  EXPECT_EQ(count_told<messages::ActorSilent>(world, job), 0u);
  world.must(NodeDown{"a", world.nodes.at("a").incarnation});
  pass(1s);
  EXPECT_TRUE(world.alive.empty()) << "they have had the whole time";
}

TEST_F(Unlinked, ASilentRankWhoseAgentIsHeardIsEndedUnlessItSpeaks) {
  const std::string actor = job + "/rollout/0";
  const node::RankId id{actor, world.record(actor).incarnation, 0};
  world.must(RankSilent{id});
  world.must(RankSilent{id, false});
  world.now = world.now + kRankSilenceMax;
  world.must(Tick{});
  EXPECT_TRUE(world.told_to_end.empty());
  world.must(RankSilent{id});
  world.now = world.now + kRankSilenceMax;
  world.must(Tick{});
  EXPECT_EQ(world.told_to_end, std::set{id});
}

TEST_F(Unlinked, WhatAnAgentThatDiesHadNotEndedYetEndsWithItsLink) {
  world.must(CancelJob{job});
  world.must(messages::JobEnded{job, messages::JobOutcome::kCancelled, "by its user"});
  EXPECT_EQ(world.told_to_end.size(), world.alive.size());
  world.must(NodeDown{"a", world.nodes.at("a").incarnation});
  EXPECT_EQ(world.links_cut, world.told_to_end);
}

TEST_F(NoAgent, ACancelledJobEndsWithTheLinksOfItsRanks) {
  world.must(CancelJob{job});
  world.must(messages::JobEnded{job, messages::JobOutcome::kCancelled, "by its user"});
  for (const auto& [id, node] : lived) lose_link(id);  // the controller cuts what it cannot kill
  world.alive.clear();
  pass(4s);
  EXPECT_EQ(world.state(job), JobState::kCancelled);
}

TEST_F(ReadyJob, ARankThatASignalHasStoppedIsHung_HT4) {
  for (const char* role : {"rollout", "counter"}) {
    const std::string actor = job + "/" + role + "/0";
    const node::RankId rank{actor, world.record(actor).incarnation, 0};
    EXPECT_TRUE(world.core.note_usage({{{rank, 0, 1, INT64_MIN}}}).empty());
    EXPECT_EQ(world.core.note_usage({{{rank, 0, 1, INT64_MAX}}}).size(), 1u);
    const auto hung = world.core.note_usage({{{rank, 0, 1, 2000}}});
    ASSERT_EQ(hung.size(), 1u);
    world.must(hung.front());
    EXPECT_EQ(scheduler::message(*world.record(actor).ending, world.now),
              "hung: a signal (SIGSTOP) has stopped it for 2.0 s");
    EXPECT_EQ(world.record(actor).kill_deadline, world.now) << "without any grace";
  }
}

}  // namespace
}  // namespace tandem::controller
