#include "scheduler/fleet/trainer_wait.h"

#include <gtest/gtest.h>

namespace tandem::scheduler {
namespace {

// A learner that has no batch, while two rollouts generate the four groups of one.
constexpr TrainerState kWaits{
    .up = true, .rollouts = 2, .step_groups = 4, .admitted = 2, .rolling = 2, .scored = 2};

TrainerState with(auto&& change) {
  TrainerState state = kWaits;
  change(state);
  return state;
}

TEST(TrainerWait, IsWhatHoldsTheNextStepUp) {
  EXPECT_EQ(trainer_wait(kWaits), TrainerWait::kSamples);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.trains = true; })), TrainerWait::kNone);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.up = false; })), TrainerWait::kLearner);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.saves = true; })), TrainerWait::kCheckpoint);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.held_up = true; })), TrainerWait::kEvaluation);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.evaluates = true; })), TrainerWait::kEvaluation);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.generated = 2; })), TrainerWait::kScores);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.rollouts = 0; })), TrainerWait::kRollouts);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.rolling = 0; })), TrainerWait::kWeights);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.admitted = 0; })), TrainerWait::kLast);
  // Groups wait, and a rollout has room: the budget gives it none before those in work are ready.
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.room = true; })), TrainerWait::kLast);
}

TEST(TrainerWait, AnEvaluationHoldsNothingUpWhileScoresAreMissing) {
  EXPECT_EQ(trainer_wait(with([](auto& s) {
              s.evaluates = true;
              s.generated = 4;
            })),
            TrainerWait::kScores);
  // Enough are scored, and others that are due first are generated still.
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.scored = 4; })), TrainerWait::kSamples);
}

}  // namespace
}  // namespace tandem::scheduler
