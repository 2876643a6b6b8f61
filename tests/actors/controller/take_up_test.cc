// A controller that follows one that died: what it takes up, and when its jobs start.
//
// Tests actors/controller/requests.h, actors/controller/queue.h.
#include <chrono>

#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {
namespace {

using namespace std::chrono_literals;

// The jobs that a later controller takes up, with as many actors as were wanted last. Their shapes
// are those of the earlier one: here no job file is read again.
TakeUpJobs jobs_of(const World& before) {
  TakeUpJobs taken;
  for (const JobTaken& job : before.remembered.jobs()) {
    JobShape shape = before.core.jobs().at(job.job).shape;
    for (auto& [role, replicas] : shape.replicas) replicas = job.wanted.at(name(role));
    shape.resume_dir = job.run_dir;
    taken.jobs.push_back({{shape, job.job, job.run_dir, job.submitted_ms}, 90s});
  }
  return taken;
}

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

}  // namespace
}  // namespace tandem::controller
