#include "actors/api/wait_deadlines.h"

#include <gtest/gtest.h>

namespace tandem::api {
namespace {

using namespace std::chrono_literals;
using scheduler::ActorState;

const Time kAsked = Time{} + 100s;
const controller::WorkByActor kWork = {
    {"a-1/learner/0", {.incarnation = Incarnation{3}, .phase = "load", .hung_at = kAsked + 40s}}};

controller::ActorRecord learner(ActorState state, scheduler::Reason reason) {
  return {.name = "a-1/learner/0",
          .job = "a-1",
          .role = messages::Role::kLearner,
          .status = {.state = state, .since = Time{} + 95s, .reason = std::move(reason)},
          .incarnation = Incarnation{3}};
}

TEST(WaitDeadlines, AStateWithATimerEndsByIt) {
  EXPECT_EQ(deadline_of(learner(ActorState::kDraining, scheduler::Draining{0, kAsked + 7s}), kWork),
            kAsked + 7s);
  controller::ActorRecord actor =
      learner(ActorState::kStarting, scheduler::Returning{"node", kAsked + 300s});
  actor.report_deadline = kAsked + 115s;
  EXPECT_EQ(deadline_of(actor, kWork), kAsked + 300s);
  actor.status.reason = scheduler::WaitingForSpawn{"node"};
  EXPECT_EQ(deadline_of(actor, kWork), kAsked + 115s);
  actor.status = {
      .state = ActorState::kStopping, .since = kAsked, .reason = scheduler::ScaleDown{}};
  actor.kill_deadline = kAsked + 3s;
  EXPECT_EQ(deadline_of(actor, kWork), kAsked + 3s);
  actor.ranks.push_back({.alive = true, .end_unheard = true});
  EXPECT_EQ(deadline_of(actor, kWork), std::nullopt) << "nobody can kill it";
  EXPECT_EQ(ended_by(actor), scheduler::EndedBy::kNode);
}

TEST(WaitDeadlines, AnActorThatLoadsEndsWhenItHangs) {
  controller::ActorRecord actor = learner(ActorState::kInitializing, scheduler::LoadingModel{});
  EXPECT_EQ(deadline_of(actor, kWork), kAsked + 40s);
  EXPECT_EQ(deadline_of(actor, {}), std::nullopt);
  actor.incarnation = Incarnation{4};
  EXPECT_EQ(deadline_of(actor, kWork), std::nullopt) << "that was its incarnation before";
  EXPECT_EQ(deadline_of(learner(ActorState::kReady, scheduler::Working{}), kWork), std::nullopt);
}

TEST(WaitDeadlines, AWaitForAnActorAtWorkEndsWhenThatHangs) {
  const messages::Wait train{.who = "a-1", .waits_for = "a-1/learner/0 to train step 2"};
  EXPECT_EQ(deadline_s(train, kWork, kAsked), 40);
  EXPECT_EQ(deadline_s(train, kWork, kAsked + 50s), 0);
  EXPECT_EQ(deadline_s(train, {}, kAsked), std::nullopt);
  EXPECT_EQ(deadline_s({.who = "a-1", .waits_for = "a-1/learner/0 to save", .deadline_s = 9}, kWork,
                       kAsked),
            9)
      << "its own";
  EXPECT_EQ(deadline_s({.who = "a-1", .waits_for = "a rollout"}, kWork, kAsked), std::nullopt);
}

}  // namespace
}  // namespace tandem::api
