// Ranks of an attempt at a run that no later controller follows: they end before their actors are
// started anew, on whichever node they live (CC-1).
//
// Tests actors/controller/adoption.h, actors/controller/queue.h.
#include <chrono>

#include "tests/actors/controller/taken_up.h"

namespace tandem::controller {
namespace {

// A job that trains, and has a program of its own, works on node "a"; returns its id.
std::string job_with_program(World& world, double cpus) {
  world.node("a", 4);
  JobShape shape = shape_of(cpus);
  add_program(shape, "counter", 1);
  const std::string job = world.submit(shape);
  world.all_ready(job);
  return job;
}

// A job that trains works on node "a"; the next controller does not take it up.
class NotTakenUp : public testing::Test {
 protected:
  NotTakenUp() { second.must(TakeUpJobs{.jobs = {}, .left = {{job, "its data are gone"}}}); }

  World before;
  const std::string job = [this] {
    before.node("a", 4);
    const std::string id = before.submit(shape_of(1));
    before.all_ready(id);
    return id;
  }();
  const std::string learner = job + "/learner/0";
  World second{2, before};
};

// The program of the job lives and is adopted, so that the job is not queued; its learner, rollout
// and reward are to start anew, and may still live on the node that is not back.
TEST(FormerRanks, ActorsThatStartAnewWaitForTheNodesWhereTheyMayLive_CC1) {
  World before;
  const std::string job = job_with_program(before, 1);
  before.node("b", 4);
  World after(2, before);
  after.must(jobs_of(before));
  after.node_back("b");
  EXPECT_EQ(after.state(job), JobState::kStarting);
  EXPECT_STREQ(after.reason(job + "/learner/0"), "WaitingForNodes");
  after.node_back("a");
  EXPECT_STREQ(after.reason(job + "/learner/0"), "WaitingForNodes") << "its rank is ending";
  after.obey();
  EXPECT_EQ(after.state_of(job + "/learner/0"), ActorState::kStarting);
}

// The job cannot be followed, and the node that its actors were on may only be cut off: it ends
// them by itself when its grace is over.
TEST(FormerRanks, ANodeWhereFormerRanksMayLiveIsWaitedForUntilTheyHaveEnded_CC1) {
  World before;
  before.node("a", 3);
  const std::string job = before.submit(shape_of(1));
  before.all_ready(job);
  before.node("b", 8);
  const std::string other = before.submit(shape_of(1));
  before.all_ready(other);
  for (const bool drained : {false, true}) {
    World after(2, before);
    after.must(jobs_of(before));
    after.node_back("b");
    after.obey();
    EXPECT_STREQ(after.reason(job + "/learner/0"), "WaitingForNodes");
    const Time returned = after.now + kNodesReturn;
    const Time until = after.now + node::kNodeGraceDefault + link::kGraceMargin;
    after.now = returned;
    after.must(Tick{});
    EXPECT_STREQ(after.reason(job + "/learner/0"), "WaitingForNodes");
    EXPECT_TRUE(after.wakes.contains(until));
    EXPECT_EQ(std::erase_if(after.alive, [](const auto& rank) { return rank.second == "a"; }), 3u);
    if (drained) {
      after.must(CordonNode{.node = "a", .why = "it is broken", .drain = true});
    } else {
      after.now = until;
      after.must(Tick{});
    }
    EXPECT_EQ(after.state(job), JobState::kStarting);
    EXPECT_EQ(after.state(other), JobState::kStarting) << "behind it";
    EXPECT_FALSE(after.remembered.nodes().contains("a"));
  }
}

// The second controller dies while it waits; and the agent of the node may have died before it.
TEST(FormerRanks, ANodeWhereFormerRanksMayLiveIsWaitedForByEachControllerThatComes_CC1) {
  for (const bool agent_died : {false, true}) {
    World before;
    before.node("a", 3);
    const std::string job = before.submit(shape_of(1));
    before.all_ready(job);
    const std::string later = before.submit(shape_of(1));
    if (agent_died) {
      before.must(NodeDown{"a", before.core.nodes().at("a").incarnation, true});
      EXPECT_EQ(before.alive.size(), 3u) << "they are linked, and work on";
    }
    World second(2, before);
    second.must(jobs_of(before));
    second.node("b", 8);
    EXPECT_STREQ(second.reason(job + "/learner/0"), "WaitingForNodes");
    World third(3, second);
    third.must(jobs_of(second));
    third.node_back("b");
    third.now = third.now + kNodesReturn;
    third.must(Tick{});
    EXPECT_STREQ(third.reason(job + "/learner/0"), "WaitingForNodes");
    EXPECT_EQ(third.state(later), JobState::kStarting) << "nobody waits with it";
    third.node_back("a");
    third.obey();
    EXPECT_EQ(third.state(job), JobState::kStarting);
  }
}

TEST(FormerRanks, EndBeforeTheirActorsStartAgain) {
  World before;
  const std::string job = job_with_program(before, 0.5);
  World after(2, before);
  after.must(jobs_of(before));
  EXPECT_TRUE(after.exchanges.contains(job)) << "a program works on, so that the job has started";
  after.node_back("a");
  EXPECT_EQ(after.alive, before.alive) << "nothing is started before the last of them has ended";
  after.obey();
  EXPECT_EQ(after.alive.size(), 4u);
  after.all_ready(job);
  EXPECT_EQ(after.record(job + "/counter/0").incarnation,
            before.record(job + "/counter/0").incarnation);
  EXPECT_GT(after.record(job + "/learner/0").incarnation,
            before.record(job + "/learner/0").incarnation);
  EXPECT_EQ(after.record(job + "/learner/0").crash_loop.deaths, 0);
}

// The second controller begins another attempt at the run, and dies before the ranks of the first
// one have ended; the third one follows that attempt, and adopts its actors alone.
TEST(FormerRanks, OfAnEarlierAttemptAreNotAdopted_CC1) {
  World before;
  const std::string job = job_with_program(before, 0.5), learner = job + "/learner/0";
  World second(2, before);
  TakeUpJobs another = jobs_of(before);
  another.jobs.front().job.earlier.rows = 30;
  second.must(another);
  EXPECT_TRUE(second.exchanges.contains(job)) << "the attempt has begun";
  World third(3, second);
  TakeUpJobs taken = jobs_of(second);
  EXPECT_EQ(taken.jobs.front().job.earlier.rows, 30);
  taken.jobs.front().follows = true;
  third.must(taken);
  EXPECT_EQ(third.state_of(job + "/counter/0"), ActorState::kStarting) << "it has outlived both";
  EXPECT_STREQ(third.reason(learner), "WaitingForNodes");
  third.node_back("a");
  EXPECT_EQ(third.alive, before.alive) << "nothing is started before the last of them has ended";
  third.obey();
  third.all_ready(job);
  EXPECT_GT(third.record(learner).incarnation, before.record(learner).incarnation);
  EXPECT_EQ(third.record(job + "/counter/0").incarnation,
            before.record(job + "/counter/0").incarnation);

  World fourth(4, third);
  taken = jobs_of(third);
  taken.jobs.front().follows = true;
  fourth.must(taken);
  fourth.node_back("a");
  EXPECT_EQ(fourth.record(learner).incarnation, third.record(learner).incarnation) << "it goes on";
  EXPECT_TRUE(fourth.told_to_end.empty());
}

// Its user resumes it, and the controller dies before the ranks of the attempt before have ended.
TEST_F(NotTakenUp, HasNoActorsToAdoptOnceItIsResumed_CC1) {
  second.node_back("a");
  JobShape shape = shape_of(1);
  shape.resume_dir = "runs/" + job;
  second.must(SubmitJob{shape, job, "runs/" + job, 0, {.rows = 30}});
  EXPECT_EQ(second.state(job), JobState::kQueued);
  World third(3, second);
  TakeUpJobs taken = jobs_of(second);
  EXPECT_EQ(taken.jobs.front().job.earlier.rows, 30);
  taken.jobs.front().follows = true;
  third.must(taken);
  third.node_back("a");
  EXPECT_EQ(third.alive, before.alive) << "nothing is started before the last of them has ended";
  third.obey();
  third.all_ready(job);
  EXPECT_GT(third.record(learner).incarnation, before.record(learner).incarnation);
}

TEST_F(NotTakenUp, HasFormerRanksThatAreWaitedForOnTheirNode_CC1) {
  second.must(SubmitJob{shape_of(1), job, "runs/" + job});
  second.node("b", 4);
  EXPECT_STREQ(second.reason(learner), "WaitingForNodes");
  second.now = second.now + kNodesReturn;
  second.must(Tick{});
  EXPECT_STREQ(second.reason(learner), "WaitingForNodes");
  second.now = second.now + node::kNodeGraceDefault + link::kGraceMargin;
  std::erase_if(second.alive, [](const auto& rank) { return rank.second == "a"; });
  second.must(Tick{});
  EXPECT_EQ(second.state_of(learner), ActorState::kStarting);
}

}  // namespace
}  // namespace tandem::controller
