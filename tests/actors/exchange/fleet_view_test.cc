// Tests fleet_view.h, workers.h, follow.h: what the rates of a run tell of its fleet.
#include "actors/exchange/fleet_view.h"

#include <limits>

#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;
using scheduler::TrainerWait;

const ActorId kOtherRollout{"job-1/rollout/1", Incarnation{4}};

// Steps of one rollout that takes the groups of one step at a time. Beside them a run of this kind
// has admitted those of the steps after it.
class FleetView : public testing::Test {
 protected:
  FleetView() {
    stage.tell(messages::LearnerUp{kLearner, {}});
    stage.tell(messages::Published{kLearner, stage.publication(kInitialWeights, kInitialWeights)});
    stage.tell(messages::WarmStarted{.from = kLearner,
                                     .publication = stage.publication({0}, kInitialWeights)});
    stage.tell(messages::CheckpointSaved{kLearner, StepId{0}, "step-0", "sha"});
    stage.tell(messages::RolloutUp{kRollout, 8});
    stage.tell(messages::RewardUp{kReward, 100});
    stage.install(kRollout, PolicyVersion{0});
  }
  std::optional<scheduler::FleetRates> rates() const {
    return stage.exchange->core().report(stage.executor.now()).status.rates;
  }
  // Of each step of the window.
  double waited_for(TrainerWait wait) const {
    const auto now = rates();
    return now ? now->waits[static_cast<std::size_t>(wait)] : -1;
  }
  // The second step comes two seconds late.
  void expect_wait_for_samples() {
    stage.train(1);
    stage.run(2s);
    stage.train(2);
    EXPECT_NEAR(waited_for(TrainerWait::kSamples), 2, 0.1);
    EXPECT_EQ(waited_for(TrainerWait::kLast), 0) << "there was room";
  }

  Stage stage;
};

// Messages have been checked for their form alone.
TEST_F(FleetView, AnInstallWhosePauseIsNoNumberHasNone) {
  stage.train(1);
  for (const double seconds :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()})
    stage.tell(messages::Installed{.from = kRollout,
                                   .version = PolicyVersion{1},
                                   .seconds = seconds,
                                   .checksum = Stage::checksum_of(PolicyVersion{1})});
  EXPECT_TRUE(stage.refused.empty()) << stage.refused.front();
  for (const JournalEntry& entry : stage.record.entries)
    EXPECT_FALSE(std::holds_alternative<InstallPaused>(entry.event));
  stage.run(2s);
  stage.train(2);
  ASSERT_TRUE(rates());
  EXPECT_EQ(rates()->install_seconds, 0);
}

// It would take groups, and cannot: the trainer waits for those that are generated.
TEST_F(FleetView, ARolloutWithoutWeightsLeavesNoRoom) {
  stage.tell(messages::RolloutUp{kOtherRollout, kCapacity});
  expect_wait_for_samples();
}

TEST_F(FleetView, ASilentRolloutLeavesNoRoom) {
  stage.tell(messages::RolloutUp{kOtherRollout, kCapacity});
  stage.tell(messages::ActorSilent{kOtherRollout, true});
  stage.install(kOtherRollout, PolicyVersion{0});
  expect_wait_for_samples();
}

// A rollout that dies and comes up again is no change of the fleet, whichever exchange sees it.
TEST_F(FleetView, MW3AnExchangeThatFollowsKnowsItsRollouts) {
  stage.tell(messages::RolloutUp{kOtherRollout, 8});
  stage.train(1);
  stage.follow();
  stage.tell(
      messages::LearnerBack{.from = kLearner, .step = StepId{1}, .training = {}, .source = {}});
  stage.tell(messages::RewardBack{.from = kReward, .capacity = 100, .held = {}});
  stage.tell(messages::RolloutBack{
      .from = kOtherRollout, .capacity = 8, .installed = {}, .checksum = 0, .held = {}});
  stage.works_done = stage.assigned().size();  // what was assigned before is assigned anew
  stage.tell(messages::RolloutBack{.from = kRollout,
                                   .capacity = 8,
                                   .installed = PolicyVersion{1},
                                   .checksum = Stage::checksum_of(PolicyVersion{1}),
                                   .held = {}});
  stage.train(2);
  stage.run(2s);
  stage.train(3);
  stage.tell(messages::ActorDown{kOtherRollout, "killed"});
  stage.tell(messages::RolloutUp{{kOtherRollout.name, Incarnation{9}}, 8});
  stage.run(2s);
  stage.train(4);
  const auto both = rates();
  ASSERT_TRUE(both);
  EXPECT_EQ(both->steps, 2);
  EXPECT_FALSE(both->since_resize);
  EXPECT_EQ(both->rollout_deaths, 1);
}

// Two rollouts, of which one drains after three steps of both.
class RolloutThatDrains : public FleetView {
 protected:
  RolloutThatDrains() {
    stage.tell(messages::RolloutUp{kOtherRollout, 8});
    steps(1, 4);
  }
  void steps(int from, int to) {
    for (int step = from; step <= to; ++step) {
      stage.run(2s);
      stage.train(step);
    }
  }
  void drain(bool returns) {
    stage.tell(
        messages::DrainActor{.who = kOtherRollout, .deadline_ms = 60'000, .returns = returns});
  }
  void end_and_come_back() {
    stage.tell(messages::ActorDown{kOtherRollout, "preempted"});
    stage.tell(messages::RolloutUp{{kOtherRollout.name, Incarnation{9}}, 8});
  }
};

TEST_F(RolloutThatDrains, MW3ToComeBackItIsNoChangeOfTheFleet) {
  const auto before = rates();
  ASSERT_TRUE(before);
  drain(true);
  end_and_come_back();
  steps(5, 6);
  const auto after = rates();
  ASSERT_TRUE(after);
  EXPECT_EQ(after->steps, before->steps + 2);
  EXPECT_EQ(after->rollout_deaths, 0);
  EXPECT_EQ(after->rollout_returns, 1);
}

TEST_F(RolloutThatDrains, MW3ToLeaveItIsAChangeOfTheFleet) {
  drain(false);
  end_and_come_back();
  steps(5, 7);
  const auto after = rates();
  ASSERT_TRUE(after);
  EXPECT_EQ(after->steps, 2);
  EXPECT_TRUE(after->since_resize);
  EXPECT_EQ(after->rollout_returns, 0);
}

// It was to come back, and its role is scaled down meanwhile: while it drains, or later.
TEST_F(RolloutThatDrains, MW3ToldASecondTimeItLeaves) {
  drain(true);
  drain(false);
  end_and_come_back();
  steps(5, 7);
  ASSERT_TRUE(rates());
  EXPECT_EQ(rates()->steps, 2);
  EXPECT_EQ(rates()->rollout_returns, 0);
}
// The second word changes no deadline: what it holds is handed back when the first one said.
TEST_F(RolloutThatDrains, ToldASecondTimeItKeepsItsDeadline) {
  stage.install(kOtherRollout, PolicyVersion{4});
  const auto held = [&] {
    return stage.exchange->core().ledger().held_by(kOtherRollout.incarnation);
  };
  ASSERT_GT(held(), 0);
  drain(true);
  stage.tell(messages::DrainActor{.who = kOtherRollout});
  EXPECT_GT(held(), 0);
  stage.run(61s);
  EXPECT_EQ(held(), 0);
}
TEST_F(RolloutThatDrains, MW3ToldWhileItIsDownItLeaves) {
  drain(true);
  stage.tell(messages::ActorDown{kOtherRollout, "preempted"});
  drain(false);
  stage.tell(messages::RolloutUp{{kOtherRollout.name, Incarnation{9}}, 8});
  steps(5, 7);
  ASSERT_TRUE(rates());
  EXPECT_EQ(rates()->steps, 2);
}

}  // namespace
}  // namespace tandem::exchange
