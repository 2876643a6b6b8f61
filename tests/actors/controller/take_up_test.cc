// A controller that follows one that died: what it takes up, and when its jobs start.
//
// Tests actors/controller/adoption.h, actors/controller/requests.h, actors/controller/queue.h.
#include <chrono>
#include <optional>

#include "tests/actors/controller/taken_up.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

TEST(TakeUp, JobsComeBackAsTheirUsersLeftThem) {
  World before;
  before.node("a", 6);
  const std::string first = before.submit(shape_of(1)), second = before.submit(shape_of(1));
  const std::string ended = before.submit(shape_of(1)), cancelled = before.submit(shape_of(1));
  before.all_ready(first);
  before.must(ScaleRole{first, messages::Role::kRollout, 2});
  before.must(CancelJob{ended});  // it was queued: it ends at once
  before.must(CancelJob{cancelled});
  const std::uint64_t newest = before.record(first + "/learner/0").incarnation.value;

  World after(2, before.remembered);
  after.must(jobs_of(before));
  EXPECT_EQ(after.core.jobs().size(), 2u);
  EXPECT_STREQ(after.reason(first + "/learner/0"), "WaitingForNodes");
  EXPECT_TRUE(after.alive.empty()) << "actors of the controller before may still be ending";
  after.node("a", 6);
  EXPECT_EQ(after.state(first), JobState::kStarting);
  EXPECT_EQ(after.state(second), JobState::kQueued) << "the order of the queue is kept";
  EXPECT_EQ(after.alive.size(), 4u) << "scaled to two rollouts";
  for (const auto& [id, node] : after.alive)
    EXPECT_GT(id.incarnation.value, newest) << "no incarnation is given twice";
  EXPECT_EQ(after.core.jobs().at(first).created, after.now + (-Duration(90s)));
  after.all_ready(first);
  EXPECT_TRUE(after.started.front().resume);
}

TEST(TakeUp, ANodeThatDoesNotComeBackIsNotWaitedForLong) {
  World before;
  before.node("a", 4);
  before.node("b", 4);
  const std::string job = before.submit(shape_of(1));
  World after(2, before.remembered);
  after.must(jobs_of(before));
  after.node("a", 4);
  EXPECT_STREQ(after.reason(job + "/learner/0"), "WaitingForNodes");
  const Time until = *after.wakes.begin();
  EXPECT_EQ(until, after.now + kNodesReturn);
  after.now = until;
  after.must(Tick{});
  EXPECT_EQ(after.state(job), JobState::kStarting);
  EXPECT_FALSE(after.remembered.nodes().contains("b"));
}

TEST(TakeUp, WithoutJobsNothingIsWaitedFor) {
  World before;
  before.node("a", 4);
  World after(2, before.remembered);
  after.must(TakeUpJobs{});
  EXPECT_TRUE(after.remembered.nodes().empty());
  after.node("c", 4);
  EXPECT_EQ(after.state(after.submit(shape_of(1))), JobState::kStarting);
}

TEST(TakeUp, AJobThatCannotBeTakenUpIsToldAndStaysRemembered) {
  World before;
  before.node("a", 4);
  const std::string job = before.submit(shape_of(1));
  World after(2, before.remembered);
  after.must(TakeUpJobs{.jobs = {}, .left = {{job, "its data is gone"}}});
  EXPECT_TRUE(after.core.jobs().empty());
  EXPECT_NE(after.announced.front().message.find("not taken up: its data is gone"),
            std::string::npos);
  EXPECT_TRUE(after.remembered.job(job)) << "the next controller tries again";
  after.must(CancelJob{job});
  EXPECT_EQ(after.remembered.job(job), nullptr);
  EXPECT_FALSE(after.take(CancelJob{job})) << "now nobody knows it";
}

TEST(TakeUp, AControllerThatDiesAtOnceForgetsNothing) {
  World before;
  before.node("a", 4);
  const std::string job = before.submit(shape_of(1));
  const World short_lived(2, before.remembered);
  EXPECT_EQ(short_lived.remembered, before.remembered);
  World after(3, short_lived.remembered);
  after.must(jobs_of(before));
  EXPECT_EQ(after.state(job), JobState::kQueued);
}

// A job of two counters that work, and the controller that follows.
class Outlived : public testing::Test {
 protected:
  Outlived() {
    before.node("a", 4);
    job = before.submit(actors_alone(2));
    before.all_ready(job);
    first = job + "/counter/0";
    second = job + "/counter/1";
  }
  World& follow() {
    after.emplace(2, before);
    after->must(jobs_of(before));
    return *after;
  }
  node::RankId rank_of(const std::string& actor) const {
    return {actor, before.record(actor).incarnation, 0};
  }

  World before;
  std::optional<World> after;
  std::string job, first, second;
};

TEST_F(Outlived, UsersProgramsWorkOnUnderTheNextController) {
  World& world = follow();
  EXPECT_EQ(world.state(job), JobState::kStarting);
  EXPECT_STREQ(world.reason(first), "Returning");
  EXPECT_EQ(world.expected.size(), 2u) << "they may dial";
  world.node_back("a");
  world.all_ready(job);
  EXPECT_EQ(world.state(job), JobState::kRunning);
  ASSERT_EQ(world.programs_started.size(), 2u) << "each is told again, and says again that it is";
  EXPECT_EQ(world.programs_started[0].incarnation, before.record(first).incarnation);
  EXPECT_EQ(world.record(first).ranks[0].pid, 4711);
  EXPECT_EQ(world.alive, before.alive) << "nobody was started";
  EXPECT_TRUE(world.told_to_end.empty());
  world.die(first);
  EXPECT_EQ(world.state_of(first), ActorState::kBackoff) << "from here on as any other";
}

TEST_F(Outlived, ALinkThatIsBackBeforeItsNodeIsTaken) {
  World& world = follow();
  world.all_ready(job);
  EXPECT_EQ(world.state(job), JobState::kRunning);
  world.node_back("a");
  EXPECT_EQ(world.state(job), JobState::kRunning);
  EXPECT_TRUE(world.told_to_end.empty());
}

TEST_F(Outlived, EndsThatNobodyHeardOfAreTold) {
  World& world = follow();
  world.node_back("a", {{.id = rank_of(first), .code = 0}, {.id = rank_of(second), .signal = 9}});
  EXPECT_STREQ(world.reason(first), "Finished");
  EXPECT_EQ(world.state_of(second), ActorState::kBackoff);
  EXPECT_EQ(world.record(second).crash_loop.deaths, 1);
  World third(3, world);  // and the next controller knows of both
  third.must(jobs_of(world));
  third.node_back("a");
  EXPECT_STREQ(third.reason(first), "Finished");
  EXPECT_EQ(third.record(second).crash_loop.deaths, 1) << "budgets are remembered";
  third.ready(second);
  third.exit_0(second);
  EXPECT_EQ(third.state(job), JobState::kSucceeded);
}

TEST_F(Outlived, OneThatTheNodeDoesNotHaveIsGone) {
  World& world = follow();
  world.alive.erase(rank_of(second));
  world.node_back("a");
  EXPECT_EQ(world.state_of(first), ActorState::kStarting);
  EXPECT_EQ(world.state_of(second), ActorState::kBackoff);
}

TEST_F(Outlived, OneThatIsNotWantedAnyMoreIsNotStartedLate) {
  const node::RankId newest = rank_of(first);
  before.must(ScaleRole{job, {"counter"}, 1});
  World& world = follow();
  world.alive.erase(rank_of(second));
  world.node_back("a", {}, newest);
  EXPECT_FALSE(world.alive.contains(rank_of(second)));
  EXPECT_FALSE(world.core.jobs().at(job).actors.contains(second));
}

TEST_F(Outlived, NoneIsStartedLateOnANodeThatMayHaveNoOthers_PL5) {
  const node::RankId newest = rank_of(first);
  before.must(CordonNode{"a", "broken", false});
  World& world = follow();
  world.alive.erase(rank_of(second));
  world.node_back("a", {}, newest);
  EXPECT_EQ(world.state_of(first), ActorState::kStarting);
  EXPECT_EQ(world.state_of(second), ActorState::kBackoff);
}

TEST_F(Outlived, ANewAgentHasNone) {
  World& world = follow();
  world.alive.clear();  // they died with the agent of that time
  world.node("a", 4);
  EXPECT_EQ(world.state_of(first), ActorState::kBackoff);
  EXPECT_EQ(world.core.nodes().at("a").leased, scheduler::Resources{});
}

TEST_F(Outlived, ANodeThatDoesNotComeBackIsWaitedForUntilItsRanksHaveEnded) {
  World& world = follow();
  world.node("b", 4);
  const Time until = world.now + node::kNodeGraceDefault + link::kGraceMargin;
  world.now = world.now + kNodesReturn;
  world.must(Tick{});
  EXPECT_STREQ(world.reason(first), "Returning");
  EXPECT_EQ(world.alive.size(), 2u) << "CC-1: their processes may live";
  EXPECT_TRUE(world.wakes.contains(until));
  world.alive.clear();
  world.now = until;
  world.must(Tick{});
  EXPECT_EQ(world.state_of(first), ActorState::kBackoff);
  world.now = *world.record(first).restart_at;
  world.must(Tick{});
  EXPECT_EQ(world.alive.at({first, world.record(first).incarnation, 0}), "b");
}

TEST_F(Outlived, OneThatSaysNothingIsEnded) {
  World& world = follow();
  world.node_back("a");
  world.now = world.now + kReportWait;
  world.must(Tick{});
  EXPECT_TRUE(world.told_to_end.contains(rank_of(first)));
  world.obey();
  const std::string why = scheduler::message(world.record(first).status.reason, world.now);
  EXPECT_NE(why.find("it lived on while its controller or its node was away, and its link did not "
                     "come back within 120.0 s"),
            std::string::npos)
      << why;
}

// Its link was back, and goes down before it has said again what it is.
TEST_F(Outlived, OneWhoseLinkGoesDownAgainHasNotFailedToStart) {
  World& world = follow();
  world.node_back("a");
  world.must(RankConnected{rank_of(first)});
  world.must(RankHung{rank_of(first), 0});
  world.now = world.now + 4s;
  world.must(Tick{});
  EXPECT_TRUE(world.told_to_end.contains(rank_of(first)));
  world.obey();
  const std::string why = scheduler::message(world.record(first).status.reason, world.now);
  EXPECT_NE(why.find("its link to the controller is down"), std::string::npos) << why;
}

// Their links may take a moment longer than the agent's, which dies in that moment.
TEST_F(Outlived, AnAgentThatDiesBeforeTheirLinksAreBackCostsNobodyAnything) {
  for (const bool agent_comes : {true, false}) {
    World& world = follow();
    world.node_back("a");
    world.ready(first);
    world.must(NodeDown{"a", world.core.nodes().at("a").incarnation, true});
    EXPECT_EQ(world.state_of(first), ActorState::kReady);
    EXPECT_STREQ(world.reason(second), "Returning");
    if (agent_comes) {
      world.agent_back("a");
      world.ready(second);
      EXPECT_EQ(world.state(job), JobState::kRunning);
      EXPECT_EQ(world.alive, before.alive) << "nobody was started";
      EXPECT_TRUE(world.told_to_end.empty());
    } else {
      EXPECT_EQ(*world.core.nodes().at("a").agent_until,
                world.now + node::kNodeGraceDefault + link::kGraceMargin)
          << "CC-1: it may live so long without a link";
      world.now = *world.core.nodes().at("a").agent_until;
      world.must(Tick{});
      EXPECT_EQ(world.state_of(second), ActorState::kBackoff);
    }
  }
}

TEST_F(Outlived, ThoseOfASilentNodeThatIsDrainedAreNotWaitedFor) {
  World& world = follow();
  world.node_back("a");
  world.must(NodeSilent{"a", world.core.nodes().at("a").incarnation, true});
  EXPECT_STREQ(world.reason(first), "Returning");
  world.alive.clear();  // its user knows
  world.must(CordonNode{"a", "it is broken", true});
  EXPECT_EQ(world.state_of(first), ActorState::kBackoff);
}

TEST_F(Outlived, WishesOfTheTimeBeforeAreCarriedOut) {
  before.must(ScaleRole{job, {"counter"}, 1});  // the second one drains
  World& world = follow();
  world.node_back("a");
  EXPECT_FALSE(world.told_to_end.contains(rank_of(first)));
  EXPECT_TRUE(world.told_to_end.contains(rank_of(second)));
  world.end({.id = rank_of(second), .code = 0});
  EXPECT_FALSE(world.core.jobs().at(job).actors.contains(second));
  world.ready(first);
  EXPECT_EQ(world.state(job), JobState::kRunning);
}

TEST_F(Outlived, OneThatWasToldToEndHasNotFinished) {
  before.must(ScaleRole{job, {"counter"}, 1});
  before.must(ScaleRole{job, {"counter"}, 2});  // and is wanted again
  World& world = follow();
  world.node_back("a", {{.id = rank_of(second), .code = 0}});
  EXPECT_EQ(world.state_of(second), ActorState::kStarting);
  EXPECT_GT(world.record(second).incarnation, before.record(second).incarnation);
}

TEST_F(Outlived, OneThatIsDrainedOffItsNodeMovesAndHasNotFinished) {
  before.must(CordonNode{"a", "new driver", true});
  World& world = follow();
  world.node("b", 4);
  world.node_back("a", {{.id = rank_of(first), .code = 0}});  // it obeyed the former controller
  EXPECT_TRUE(world.told_to_end.contains(rank_of(second)));
  world.end({.id = rank_of(second), .code = 0});
  for (const std::string& actor : {first, second})
    EXPECT_EQ(world.alive.at({actor, world.record(actor).incarnation, 0}), "b");
}

TEST_F(Outlived, AnOutcomeStands) {
  before.must(messages::RankFailed{first, before.record(first).incarnation, 0, "bad arguments",
                                   ErrorCode::kInvalid});
  ASSERT_EQ(before.state(job), JobState::kStopping);
  World& world = follow();
  EXPECT_EQ(world.state(job), JobState::kStopping);
  world.node_back("a");
  world.obey();
  EXPECT_EQ(world.state(job), JobState::kFailed);
  EXPECT_TRUE(world.results.contains(job));
  EXPECT_EQ(world.remembered.job(job), nullptr);
}

TEST_F(Outlived, AJobThatWasCancelledLeavesRanksThatAreEnded) {
  before.must(CancelJob{job});
  World& world = follow();
  EXPECT_TRUE(world.core.jobs().empty());
  world.node_back("a");
  EXPECT_EQ(world.told_to_end.size(), 2u);
  world.submitted = before.submitted;
  const std::string next = world.submit(actors_alone(1));
  EXPECT_STREQ(world.reason(next + "/counter/0"), "WaitingForCapacity") << "they are still there";
  world.obey();
  EXPECT_EQ(world.state(next), JobState::kStarting);
}

// Its exchange goes on where the one before was.
class Followed : public testing::Test {
 protected:
  Followed() {
    before.node("a", 8);
    job = before.submit(shape_of(1, 2, 2));
    before.all_ready(job);
    before.must(ExchangeOpened{job, {"ipc:///s2"}});
    TakeUpJobs taken = jobs_of(before);
    taken.jobs.front().follows = true;
    after.emplace(2, before);
    after->must(taken);
  }

  World before;
  std::string job;
  std::optional<World> after;
};

TEST_F(Followed, AJobThatTrainsGoesOnWithAllItsActors) {
  World& world = *after;
  EXPECT_TRUE(world.exchanges.contains(job));
  EXPECT_EQ(world.core.jobs().at(job).bulk, std::vector<std::string>{"ipc:///s2"});
  world.node_back("a");
  for (const auto& [id, node] : world.alive) world.must(RankConnected{id});
  EXPECT_EQ(world.started.size(), 4u) << "each is told again, of a gang rank 0 first";
  const ActorRecord& learner = world.record(job + "/learner/0");
  world.must(messages::RankListening{learner.name, learner.incarnation, "tcp://a:1"});
  EXPECT_EQ(world.started.size(), 5u);
  for (const auto& [id, node] : world.alive)
    world.must(messages::RankReady{id.actor, id.incarnation, id.rank});
  EXPECT_EQ(world.alive, before.alive);
  EXPECT_EQ(world.state_of(job + "/learner/0"), ActorState::kReady);
  world.die(job + "/rollout/1");
  EXPECT_EQ(count_told<messages::ActorDown>(world, job), 1u);
}

// The controller before died while it told the node what to start.
TEST_F(Followed, ARankThatItsNodeWasNotToldToStartIsStartedNow) {
  World& world = *after;
  const std::string learner = job + "/learner/0";
  const node::RankId newest{learner, world.record(learner).incarnation, 0};
  std::erase_if(world.alive, [&](const auto& rank) { return comes_later(rank.first, newest); });
  ASSERT_EQ(world.alive.size(), 1u);
  world.node_back("a", {}, newest);
  EXPECT_EQ(world.alive, before.alive) << "and its gang goes on";
  EXPECT_STREQ(world.reason(learner), "Returning");
  EXPECT_STREQ(world.reason(job + "/rollout/0"), "WaitingForSpawn");
  EXPECT_TRUE(world.told_to_end.empty());
  for (const auto& [id, node] : world.alive) world.must(RankConnected{id});
  world.must(messages::RankListening{learner, newest.incarnation, "tcp://a:1"});
  for (const auto& [id, node] : world.alive)
    world.must(messages::RankReady{id.actor, id.incarnation, id.rank});
  for (const auto& [name, actor] : world.core.jobs().at(job).actors) {
    EXPECT_EQ(world.state_of(name), ActorState::kReady) << name;
    EXPECT_EQ(actor.crash_loop.deaths, 0) << name;
  }
}

// One that was told to start and is not there has died, and its gang with it.
TEST_F(Followed, AGangOfWhichARankHasDiedIsStartedAnew) {
  World& world = *after;
  const std::string learner = job + "/learner/0";
  const node::RankId first{learner, world.record(learner).incarnation, 0};
  const node::RankId second{learner, first.incarnation, 1};
  world.alive.erase(first);
  world.alive.erase(second);
  world.node_back("a", {}, first);
  EXPECT_EQ(world.state_of(learner), ActorState::kBackoff);
  EXPECT_FALSE(world.alive.contains(second));
  EXPECT_EQ(world.record(learner).crash_loop.deaths, 1);
}

TEST_F(Followed, AGangThatIsBackInPartIsWaitedForWhereItsAgentDies) {
  World& world = *after;
  world.node_back("a");
  const std::string learner = job + "/learner/0";
  world.must(RankConnected{{learner, world.record(learner).incarnation, 1}});
  EXPECT_STREQ(world.reason(learner), "Returning");
  world.must(NodeDown{"a", world.core.nodes().at("a").incarnation, true});
  world.agent_back("a");
  for (const auto& [id, node] : world.alive) world.must(RankConnected{id});
  EXPECT_EQ(world.state_of(learner), ActorState::kInitializing);
  EXPECT_EQ(world.alive, before.alive);
  EXPECT_TRUE(world.told_to_end.empty());
}

TEST(TakeUp, NoneIsStartedLateOnAGpuThatIsGone) {
  World before;
  before.node("a", 16, 3);
  const std::string job = before.submit(gpu_shape_of(1, 2));
  before.must(ExchangeOpened{job, {"ipc:///s2"}});
  World after(2, before);
  TakeUpJobs taken = jobs_of(before);
  taken.jobs.front().follows = true;
  after.must(taken);
  const std::string last = job + "/rollout/1";
  std::erase_if(after.alive, [&](const auto& rank) { return rank.first.actor == last; });
  node::NodeUp up{"a", before.core.nodes().at("a").incarnation, 16, std::int64_t{1} << 40, 1};
  for (const char* uuid : {"a-0", "a-1", "a-2"})
    if (uuid != before.gpus.at(last).front()) up.gpus.push_back({.uuid = uuid});
  for (const auto& [id, node] : after.alive) up.ranks.push_back({id, 4711});
  up.newest_order = {job + "/rollout/0", before.record(job + "/rollout/0").incarnation, 0};
  after.must(up);
  EXPECT_EQ(after.state_of(job + "/rollout/0"), ActorState::kStarting);
  EXPECT_EQ(after.state_of(last), ActorState::kBackoff);
}

// The journal has the uuids: the next controller may hear of them in another order, and not of all.
TEST(TakeUp, AnActorKeepsItsOwnGpu) {
  World before;
  before.node("a", 16, 3);
  JobShape shape = gpu_shape_of(1, 2);
  const std::string job = before.submit(shape);
  before.all_ready(job);
  before.must(ExchangeOpened{job, {"ipc:///s2"}});
  std::map<std::string, std::int64_t> expected{{"a-0", 1000}, {"a-1", 1000}, {"a-2", 1000}};
  for (const char* rollout : {"/rollout/0", "/rollout/1"})
    expected[before.gpus.at(job + rollout).front()] = 0;
  for (const bool one_is_gone : {false, true}) {
    World after(2, before);
    TakeUpJobs taken = jobs_of(before);
    taken.jobs.front().follows = true;
    after.must(taken);
    node::NodeUp up{"a", before.core.nodes().at("a").incarnation, 16, std::int64_t{1} << 40, 1};
    const std::string gone = one_is_gone ? before.gpus.at(job + "/rollout/0").front() : "";
    for (const char* uuid : {"a-2", "a-1", "a-0"})
      if (uuid != gone) up.gpus.push_back({.uuid = uuid});
    for (const auto& [id, node] : after.alive) up.ranks.push_back({id, 4711});
    after.must(up);
    std::map<std::string, std::int64_t> free;
    for (const GpuRecord& gpu : after.core.nodes().at("a").gpus) {
      free[gpu.device.uuid] = gpu.free_milli;
      EXPECT_EQ(gpu.gone, gpu.device.uuid == gone);
    }
    EXPECT_EQ(free, expected);
    for (const char* rollout : {"/rollout/0", "/rollout/1"}) after.die(job + rollout);
    EXPECT_EQ(after.core.nodes().at("a").leased.gpu_milli, 0);
  }
}

TEST(TakeUp, AJobThatIsOverEndsWithItsLastProcess) {
  World before;
  before.node("a", 4);
  const std::string job = before.submit(shape_of(1));
  before.all_ready(job);
  before.must(messages::JobEnded{job, messages::JobOutcome::kSucceeded, "trained", true});
  ASSERT_EQ(before.state(job), JobState::kStopping);
  World after(2, before);
  after.must(jobs_of(before));
  EXPECT_EQ(after.state(job), JobState::kStopping);
  EXPECT_TRUE(after.exchanges.empty());
  after.node_back("a");
  after.obey();
  EXPECT_EQ(after.state(job), JobState::kSucceeded);
  EXPECT_FALSE(after.results.contains(job)) << "its exchange wrote it";
}

// The host was stopped for longer than its links last.
TEST_F(Outlived, ANodeThatWasTakenForLostHasThemStill) {
  const auto living = before.alive;
  before.outlived = true;  // by the records they have ended
  before.node_lost("a");
  EXPECT_EQ(before.state_of(first), ActorState::kBackoff);
  before.alive = living;
  before.node_back("a");
  EXPECT_EQ(before.state_of(first), ActorState::kStarting);
  EXPECT_EQ(before.state_of(second), ActorState::kStarting);
  before.all_ready(job);
  EXPECT_EQ(before.core.jobs().at(job).ready, 2);
  EXPECT_TRUE(before.told_to_end.empty());
}

// The learner, the rollout and the reward have ended by the records, and are found to live on a
// node that was taken for lost. There is room for them on another one.
TEST(TakeUp, AnActorWhoseFormerProcessIsStillEndingWaits_CC1) {
  World world;
  world.node("a", 4);
  const std::string job = world.submit(shape_of(1)), learner = job + "/learner/0";
  world.all_ready(job);
  world.node("b", 4);
  const auto living = world.alive;
  world.outlived = true;
  world.node_lost("a");
  ASSERT_EQ(world.state_of(learner), ActorState::kBackoff);
  world.alive = living;
  world.node_back("a");
  world.now = *world.record(learner).restart_at + 1min;
  world.must(Tick{});
  EXPECT_EQ(world.alive, living);
  EXPECT_STREQ(world.reason(learner), "FormerEnding");
  world.die(job + "/reward/0");
  EXPECT_EQ(world.state_of(job + "/reward/0"), ActorState::kStarting) << "it waits for no other";
  EXPECT_STREQ(world.reason(learner), "FormerEnding");
  world.die(node::RankId{learner, living.begin()->first.incarnation, 0});
  EXPECT_EQ(world.state_of(learner), ActorState::kStarting);
}

TEST_F(Outlived, ANodeThatWasTakenForLostEndsThoseWithASuccessor) {
  before.node("b", 4);
  before.outlived = true;
  const node::RankId old = rank_of(first);
  before.node_lost("a");  // CC-1 is not seen to here: the node cannot be reached
  before.now = *before.record(first).restart_at;
  before.must(Tick{});
  ASSERT_NE(before.record(first).incarnation, old.incarnation);
  before.alive.emplace(old, "a");
  before.node_back("a");
  EXPECT_TRUE(before.told_to_end.contains(old));
}

}  // namespace
}  // namespace tandem::controller
