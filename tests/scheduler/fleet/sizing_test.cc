#include "scheduler/fleet/sizing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/scheduler/fleet/random_fleet.h"

namespace tandem::scheduler {
namespace {

// A worked example: 512 samples of 1,536 tokens per step of 20 s; 4,000 tok/s measured per
// instance.
constexpr Rates kRunbook{.consumed_per_s = 512 * 1536.0 / 20.0, .instance_per_s = 4000.0};

TEST(Sizing, MatchesTheFleetToTheTrainer) {
  EXPECT_EQ(matched_instances(kRunbook), 13);
  EXPECT_EQ(matched_instances(kRunbook, 1.0), 10);
}

TEST(Sizing, TooFewInstancesLeaveTheTrainerIdle) {
  EXPECT_NEAR(trainer_idle_fraction(kRunbook, 8), 1 - 20.0 / 24.576, 1e-12);
  EXPECT_NEAR(trainer_idle_fraction(kRunbook, 8), 0.186, 5e-4);
  EXPECT_EQ(trainer_idle_fraction(kRunbook, 13), 0.0);
  EXPECT_EQ(rollout_idle_fraction(kRunbook, 8), 0.0);
}

TEST(Sizing, TooManyGrowABacklogOrIdle) {
  EXPECT_NEAR(backlog_per_s(kRunbook, 15), 20678.4, 1e-6);
  EXPECT_NEAR(600 * backlog_per_s(kRunbook, 15) / 1e6, 12.4, 0.05);
  EXPECT_EQ(backlog_per_s(kRunbook, 8), 0.0);
  EXPECT_NEAR(rollout_idle_fraction(kRunbook, 15), 20678.4 / 60000, 1e-12);
}

// 8 replicas that each finish 8 completions in 3 s.
TEST(Sizing, TheLessonsThroughput) {
  constexpr Replicas kReplicas{.count = 8, .completions = 8, .seconds = 3};
  EXPECT_NEAR(completions_per_s(kReplicas), 21.3, 0.05);
  EXPECT_NEAR(seconds_to_complete(kReplicas, 256), 12.0, 1e-9);
}

// The same by the model: 256 completions of 100 tokens, then 5 s of training, one after the other.
TEST(Sizing, TheLessonsIterationsWhereNothingOverlaps) {
  const FleetModel lesson{.rollouts_per_s = {8 * 100 / 3.0},
                          .step_seconds = 5,
                          .step_tokens = 256 * 100,
                          .completions_per_step = 256,
                          .overlaps = false};
  const SteadyState eight = steady_state(lesson, 8);
  EXPECT_NEAR(eight.cycle_seconds, 17, 1e-9);
  EXPECT_NEAR(eight.steps_per_day, 5082, 1);
  EXPECT_NEAR(eight.trainer_idle_fraction, 12.0 / 17, 1e-9);
  EXPECT_NEAR(eight.rollout_idle_fraction, 5.0 / 17, 1e-9);
  EXPECT_EQ(eight.backlog_per_s, 0.0);
}

// Throughput = batch · length / generation time; required = prompts · samples · length / step time.
// The slower of both leaves the other side idle.
TEST(Sizing, GenerationAndRequiredThroughput) {
  const double required = tokens_per_s({.completions = 512, .tokens_mean = 1536, .seconds = 20});
  EXPECT_DOUBLE_EQ(required, 39321.6);
  const double generated =
      tokens_per_s({.completions = 512, .tokens_mean = 1536, .seconds = 24.576});
  EXPECT_NEAR(generated, 32000, 1e-9);
  EXPECT_EQ(idle_side(generated, required), IdleSide::kTrainer);
  EXPECT_EQ(idle_side(60000, required), IdleSide::kRollouts);
  EXPECT_EQ(idle_side(required, required), IdleSide::kNeither);
}

TEST(Sizing, AModelHasTheRunbooksFigures) {
  const FleetModel model{.rollouts_per_s = {4000}, .step_seconds = 20, .step_tokens = 786432};
  ASSERT_TRUE(check_model(model));
  EXPECT_EQ(matched_rollouts(model), 13);
  EXPECT_NEAR(steady_state(model, 8).trainer_idle_fraction, 1 - 20.0 / 24.576, 1e-12);
  EXPECT_EQ(steady_state(model, 13).trainer_idle_fraction, 0.0);
  EXPECT_NEAR(steady_state(model, 15).backlog_per_s, 20678.4, 1e-6);
}

TEST(Sizing, RefusesRatesThatAreNoRates) {
  const FleetModel good{.rollouts_per_s = {4000}, .step_seconds = 20, .step_tokens = 1000};
  const auto refused = [](const FleetModel& model, double headroom, const char* said) {
    const auto checked = check_model(model, headroom);
    ASSERT_FALSE(checked) << said;
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalid);
    EXPECT_NE(checked.error().message.find(said), std::string::npos) << checked.error().message;
    EXPECT_FALSE(checked.error().help.empty());
  };
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    FleetModel model = good;
    model.rollouts_per_s = {4000, bad};
    refused(model, 0.8, "rollouts' tokens per second");
    model = good;
    model.step_seconds = bad;
    refused(model, 0.8, "tokens or seconds per step");
    model = good;
    model.step_tokens = bad;
    refused(model, 0.8, "tokens or seconds per step");
    refused(good, bad, "headroom");
    model = good;
    model.generated_per_trained = bad;
    refused(model, 0.8, "fewer tokens are generated");
  }
  FleetModel model = good;
  model.rollouts_per_s.clear();
  refused(model, 0.8, "rollouts' tokens per second");
  model = good;
  model.pause_fraction = 1;
  refused(model, 0.8, "pauses");
  model = good;
  model.step_tokens = 1e12;
  refused(model, 0.8, "more than 1048576 rollouts");
}

TEST(Sizing, RolloutsBeyondTheModelAreMeanOnes) {
  const FleetModel model{.rollouts_per_s = {100, 300}, .step_seconds = 1, .step_tokens = 1000};
  EXPECT_DOUBLE_EQ(steady_state(model, 1).cycle_seconds, 10);
  EXPECT_DOUBLE_EQ(steady_state(model, 2).cycle_seconds, 2.5);
  EXPECT_DOUBLE_EQ(steady_state(model, 4).cycle_seconds, 1.25);
}

// A rollout more never makes the trainer wait longer, and the matched fleet does not make it wait.
TEST(Sizing, MoreRolloutsNeverLeaveTheTrainerMoreIdle) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    const FleetModel model = random_model(rng);
    ASSERT_TRUE(check_model(model));
    SteadyState before = steady_state(model, 1);
    for (std::int64_t n = 2; n <= 40; ++n) {
      const SteadyState now = steady_state(model, n);
      EXPECT_LE(now.trainer_idle_fraction, before.trainer_idle_fraction);
      EXPECT_GE(now.rollout_idle_fraction, before.rollout_idle_fraction);
      EXPECT_GE(now.backlog_per_s, before.backlog_per_s);
      EXPECT_GE(now.steps_per_day, before.steps_per_day);
      before = now;
    }
    if (!model.overlaps) continue;
    FleetModel mean = model;  // the first ones of a fleet may all be its slow ones
    mean.rollouts_per_s = {rates_of(model).instance_per_s};
    mean.pause_fraction = 0;
    mean.generated_per_trained = 1;
    EXPECT_NEAR(steady_state(mean, matched_rollouts(model)).trainer_idle_fraction, 0, 1e-9);
  }
}

}  // namespace
}  // namespace tandem::scheduler
