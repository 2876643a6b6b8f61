#include "scheduler/fleet/trainer_wait.h"

#include <gtest/gtest.h>

namespace tandem::scheduler {
namespace {

using enum TrainerWait;

// A learner that has no batch, while two rollouts generate the four groups of one.
constexpr TrainerState kWaits{
    .up = true, .rollouts = 2, .step_groups = 4, .admitted = 2, .rolling = 2, .scored = 2};

TrainerState with(auto&& change) {
  TrainerState state = kWaits;
  change(state);
  return state;
}

TEST(TrainerWait, IsWhatHoldsTheNextStepUp) {
  EXPECT_EQ(trainer_wait(kWaits), kSamples);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.trains = true; })), kNone);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.up = false; })), kLearner);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.saves = true; })), kCheckpoint);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.held_up = true; })), kEvaluation);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.evaluates = true; })), kEvaluation);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.generated = 2; })), kScores);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.rollouts = 0; })), kRollouts);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.rolling = 0; })), kWeights);
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.admitted = 0; })), kLast);
}

TEST(TrainerWait, AnEvaluationHoldsNothingUpWhileScoresAreMissing) {
  EXPECT_EQ(trainer_wait(with([](auto& s) {
              s.evaluates = true;
              s.generated = 4;
            })),
            kScores);
  // Enough are scored, and others that are due first are generated still.
  EXPECT_EQ(trainer_wait(with([](auto& s) { s.scored = 4; })), kSamples);
}

}  // namespace
}  // namespace tandem::scheduler
