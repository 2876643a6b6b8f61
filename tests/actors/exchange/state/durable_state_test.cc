// The durable state by itself. That replaying a whole run's journal gives the live state (DU-2) is
// shown by every run of the simulation, at every flush (tests/actors/controller/simulation.cc).
#include "actors/exchange/state/durable_state.h"

#include <gtest/gtest.h>

#include <set>

#include "actors/exchange/state/state_image.h"
#include "tests/actors/exchange/state/every_event.h"
#include "tests/actors/exchange/state/leaves.h"

namespace tandem::exchange {
namespace {

// Every list has an element and every optional a value.
StateImage full_image() {
  const ActorId who{"job-1/rollout/0", Incarnation{3}};
  const auto events = every_event();
  StateImage image{
      .began = std::get<RunBegan>(events[0]),
      .ledger = {.discarded = {1}, .refused = {2}, .batches = {{StepId{1}, {GroupId{4}}}}},
      .fixed_first = StepId{1},
      .fixed_slots = {{StepId{1}, 0, 0, GroupId{4}, true}},
      .workers = {{messages::Role::kRollout, who, 8, PolicyVersion{1}, false}},
      .ended = {who},
      .learner = {.who = who,
                  .owed = LearnerTask::kTrain,
                  .training = StepId{1},
                  .checkpoint_awaited = StepId{2},
                  .checksums = {{1, 2}}},
      .versions = {.offered = {PolicyVersion{1}}, .checksums = {{1, 2}}},
      .evaluations = {.running = {{messages::EvaluationId{1}, EvaluationKind::kFinal,
                                   PolicyVersion{1}}},
                      .once = {EvaluationKind::kFinal}},
      .end = EndAsked{messages::JobOutcome::kFailed, "reason"},
      .last_save = StepId{1}};
  for (const JournalEvent& event : events)
    if (const auto* generated = std::get_if<GroupGenerated>(&event))
      image.groups = {{.id = GroupId{4},
                       .due = StepId{1},
                       .step = StepId{1},
                       .lease = LeaseImage{},
                       .slot = scheduler::Slot{},
                       .header = generated->header,
                       .rewards = {1}}};
  return image;
}

TEST(StateImage, DU3EveryFactIsInTheHash) {
  Leaves all(-1);
  StateImage image = full_image();
  all.visit(image);
  EXPECT_EQ(all.empty(), 0) << "full_image() leaves out what some facts hold";
  EXPECT_GT(all.count(), 90);
  std::set<std::uint64_t> hashes = {hash_of(image)};
  for (int leaf = 0; leaf < all.count(); ++leaf) {
    StateImage changed = full_image();
    Leaves(leaf).visit(changed);
    EXPECT_TRUE(hashes.insert(hash_of(changed)).second) << "leaf " << leaf << ", DU-3";
  }
}

TEST(StateImage, DU3FactsOfLaterVersionsAreInTheHashWhereThereAreAny) {
  const LaterImage full{.suspects = {{GroupId{4}, 2, 1, true, true, "job-1/rollout/0"}},
                        .poisoned = {3},
                        .batches_kept = StepId{4}};
  LaterImage image = full;
  Leaves all(-1);
  all.visit(image);
  EXPECT_EQ(all.empty(), 0);
  std::set<std::uint64_t> hashes = {hash_of({}), hash_of({}, full)};
  EXPECT_EQ(hashes.size(), 2u);
  EXPECT_EQ(hash_of({}, {}), hash_of({})) << "journals of earlier versions";
  for (int leaf = 0; leaf < all.count(); ++leaf) {
    LaterImage changed = full;
    Leaves(leaf).visit(changed);
    EXPECT_TRUE(hashes.insert(hash_of({}, changed)).second) << "leaf " << leaf << ", DU-3";
  }
}

TEST(StateImage, DU3TheEpochsOfBroadcastsAreInTheHashWhereThereAreAny) {
  EXPECT_EQ(hash_of({}, {}, {}), hash_of({})) << "journals of earlier versions";
  const LaterImage poisoned{.suspects = {}, .poisoned = {3}, .batches_kept = {}};
  const std::set<std::uint64_t> hashes = {hash_of({}), hash_of({}, {}, {1}), hash_of({}, {}, {2}),
                                          hash_of({}, poisoned), hash_of({}, poisoned, {1})};
  EXPECT_EQ(hashes.size(), 5u);
}

// A run of one group, event by event.
class OneGroup : public testing::Test {
 protected:
  void apply(JournalEvent event) {
    state_.apply(event);
    replayed_.apply(event);
    EXPECT_EQ(state_.hash(), replayed_.hash()) << "DU-2";
    const auto& facts = state_.facts();
    const DurableState restored(
        facts_of(image_of(facts), later_image_of(facts), broadcast_image_of(facts)));
    EXPECT_EQ(restored.hash(), state_.hash()) << "DU-4";
  }
  // The event changes the state.
  void changes(JournalEvent event) {
    const std::uint64_t before = state_.hash();
    const auto index = event.index();
    apply(std::move(event));
    EXPECT_NE(state_.hash(), before) << "event " << index << ", DU-3";
  }

  const ActorId rollout_{"job-1/rollout/0", Incarnation{3}};
  const ActorId reward_{"job-1/reward/0", Incarnation{4}};
  const ActorId learner_{"job-1/learner/0", Incarnation{5}};
  const messages::Publication first_{.version = PolicyVersion{0}, .checksum = 1, .broadcast = {}};
  DurableState state_, replayed_;
};

TEST_F(OneGroup, EachStepOfATripIsAnotherState) {
  const scheduler::Budget budget{.max_staleness = 1, .lookahead = 1, .steps_total = 3};
  const scheduler::LeaseId lease{1}, second{2};
  changes(RunBegan{budget, false, 17, Epoch{1}});
  changes(LearnerCameUp{learner_, {}});
  changes(LearnerAsked{LearnerTask::kPublish, {}});
  changes(VersionPublished{learner_, first_, {}});
  changes(StageEntered{RunStage::kRunning, "training"});
  changes(WorkerCameUp{messages::Role::kRollout, rollout_, 8});
  changes(WorkerCameUp{messages::Role::kReward, reward_, 8});
  changes(VersionInstalled{rollout_, PolicyVersion{0}});
  changes(GroupAdmitted{GroupId{1}, 0, {}});
  changes(RolloutLeased{GroupId{1}, lease, rollout_, PolicyVersion{0}});
  const std::uint64_t leased = state_.hash();
  state_.set_deadline({GroupId{1}, lease, Epoch{1}}, Time{5});
  EXPECT_EQ(state_.hash(), leased) << "a deadline is no fact";
  changes(GroupGenerated{rollout_,
                         {.group = GroupId{1},
                          .attempt = 1,
                          .trajectories = {{}},
                          .payload = {.node = "n", .bytes = 1}}});
  changes(RewardLeased{GroupId{1}, second, reward_});
  changes(GroupScored{GroupId{1}, second, {1}, false});
  changes(BatchFormed{StepId{0}, {GroupId{1}}});
  changes(LearnerAsked{LearnerTask::kTrain, StepId{0}});
  changes(StepTrained{StepId{0}, learner_.incarnation, 2, {GroupId{1}}, {}});
  EXPECT_EQ(state_.facts().flow.ledger.counters().trained, 1);
  changes(CheckpointAsked{StepId{1}});
  changes(CheckpointKept{StepId{1}, "step-1", "sha"});
  EXPECT_TRUE(state_.facts().flow.entries.empty()) << "durable groups are forgotten";
  changes(EndAsked{messages::JobOutcome::kCancelled, "by the user"});
  changes(RunEnded{"by the user"});
  const std::uint64_t end = state_.hash();
  apply(StateHashed{end});
  apply(TotalsNoted{StepId{1}, {}});
  EXPECT_EQ(state_.hash(), end) << "figures are no facts";
}

TEST_F(OneGroup, ARunThatBeginsAgainForgetsTheOneBefore) {
  const RunBegan began{{.max_staleness = 1, .lookahead = 1, .steps_total = 3}, false, 17, Epoch{1}};
  apply(began);
  const std::uint64_t empty = state_.hash();
  changes(LearnerCameUp{learner_, {}});
  apply(began);
  EXPECT_EQ(state_.hash(), empty);
}

}  // namespace
}  // namespace tandem::exchange
