// Fleets small enough that a pencil finds their figures, and what must hold of any.
//
// Tests actors/forecast/forecast.h, actors/forecast/rollout_model.h,
// actors/forecast/learner_model.h, actors/forecast/reward_model.h, actors/forecast/state_clock.h,
// actors/forecast/virtual_store.h.
#include "actors/forecast/forecast.h"

#include <gtest/gtest.h>

#include "runtime/base/log.h"
#include "runtime/base/rng.h"
#include "scheduler/fleet/sizing.h"

namespace tandem::forecast {
namespace {

const bool kSilent = (log::mute(), true);

// 4 groups of 2 completions of 100 tokens per step; a rollout of 8 sequences takes 10 ms per token
// of all of them, so one second for a batch; the trainer 1 s.
ForecastConfig small(std::int64_t max_staleness, std::size_t rollouts = 1) {
  ForecastConfig config{.exchange = {},
                        .rollouts = {},
                        .rollout = {},
                        .learner = {.step_s = 1},
                        .reward = {},
                        .failures = {},
                        .lengths = *Lengths::parse("constant(100)")};
  config.exchange.budget = {.max_staleness = max_staleness,
                            .lookahead = scheduler::default_lookahead(max_staleness),
                            .groups_per_step = 4,
                            .steps_total = 50};
  config.exchange.n = 2;
  config.rollouts.assign(rollouts, {.step_s = 0.01});
  config.rollout.capacity = 12;
  config.rollout.max_num_seqs = 8;
  config.rollout.response_most = 200;
  return config;
}

Forecast made(const ForecastConfig& config) {
  auto result = forecast(config);
  EXPECT_TRUE(result) << (result ? "" : result.error().message + ": " + result.error().where);
  return result ? *std::move(result) : Forecast{};
}

// Strictly on-policy, generation and training take turns.
TEST(Forecast, OnPolicyIsOneAfterTheOther) {
  const Forecast of = made(small(0));
  ASSERT_EQ(of.steps.size(), 50u);
  EXPECT_NEAR(of.seconds, 100, 0.5);
  EXPECT_NEAR(of.trainer_idle_fraction, 0.5, 0.01);
  EXPECT_NEAR(of.rollout_idle_fraction, 0.5, 0.01);
  EXPECT_EQ(of.staleness, (std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 400}}));
  EXPECT_NEAR(of.step_seconds, 1, 1e-9);
  EXPECT_EQ(of.tokens_trained, 50 * 8 * 100);
  EXPECT_EQ(of.groups_trained, 200);
  EXPECT_TRUE(of.groups_discarded.empty());
  EXPECT_EQ(of.steps.back().tokens_trained, of.tokens_trained);
}

// The first batch and the last steps count in the whole run alone.
TEST(Forecast, TheSteadyPartHasNeitherStartNorEnd) {
  ForecastConfig config = small(1);
  config.rollouts = {{.step_s = 0.008}};
  config.exchange.budget.steps_total = 8;
  const Forecast of = made(config);
  EXPECT_NEAR(of.trainer_idle_fraction, 0.8 / 8.8, 0.01);
  ASSERT_TRUE(of.steady);
  EXPECT_EQ(of.steady->first, 3);
  EXPECT_EQ(of.steady->last, 6);
  EXPECT_NEAR(of.steady->seconds, 4, 0.02);
  EXPECT_NEAR(of.steady->tokens_trained_per_s, 800, 5);
  EXPECT_LT(of.steady->trainer_idle_fraction, 0.01);
  EXPECT_NEAR(of.steady->rollout_idle_fraction, 0.2, 0.02);
}

// One step off, they overlap: only the first batch is waited for.
TEST(Forecast, OneStepOffOverlaps) {
  const Forecast of = made(small(1));
  EXPECT_NEAR(of.seconds, 51, 0.5);
  EXPECT_LT(of.trainer_idle_fraction, 0.04);
  EXPECT_EQ(of.staleness.back().first, 1);
}

// The staleness_threshold s of verl is a share of what is between two versions: `lookahead` is
// m (1 + s) - 1 with m steps between them.
TEST(Forecast, AShareOfABatchIsGeneratedAheadOfTheNewestVersion) {
  for (const std::int64_t tenths : {0, 1, 3, 5, 10}) {
    SCOPED_TRACE(tenths);
    ForecastConfig config = small(64);
    config.exchange.budget.lookahead = 9 + tenths;
    config.exchange.budget.sync_steps = 10;
    config.rollouts = {{.step_s = 0.0001}};  // all that is admitted waits for the learner
    const Forecast of = made(config);
    EXPECT_EQ(of.steps[8].queue_depth, 4 * (tenths + 1));  // one step before the version
    EXPECT_EQ(of.steps[9].queue_depth, 4 * tenths);
  }
}

TEST(Forecast, AgreesWithTheFirstOrderModelWhereOnePoolIsTheBottleneck) {
  for (const std::size_t rollouts : {1, 2, 3}) {
    ForecastConfig config = small(8, rollouts);  // a tighter bound holds rollouts back
    config.exchange.budget.steps_total = 200;
    config.learner.step_s = 0.2;
    const Forecast of = made(config);
    const double rate = 8 / 0.01;
    const scheduler::FleetModel model{.rollouts_per_s = {rate},
                                      .step_seconds = 0.2,
                                      .step_tokens = 800,
                                      .completions_per_step = 8};
    const auto predicted = scheduler::steady_state(model, static_cast<std::int64_t>(rollouts));
    EXPECT_NEAR(of.seconds / 200, predicted.cycle_seconds, 0.1 * predicted.cycle_seconds)
        << rollouts;
  }
}

TEST(Forecast, AnInstallPausesTheRollout) {
  ForecastConfig config = small(1);
  config.rollouts = {{.step_s = 0.01, .install_s = 0.5}};
  const Forecast of = made(config);
  EXPECT_NEAR(of.seconds / 50, 1.5, 0.05);  // the rollout is the bottleneck now
  EXPECT_NEAR(of.install_fraction, 1.0 / 3, 0.02);
}

TEST(Forecast, ARolloutThatDiesLosesTimeAndNoGroup) {
  ForecastConfig config = small(1, 3);
  config.failures = {.rollout_mtbf_s = 8, .restart_s = 2};
  const Forecast of = made(config);
  EXPECT_GT(of.rollout_deaths, 5);
  EXPECT_EQ(of.groups_trained, 200);
  EXPECT_GT(of.tokens_generated, of.tokens_trained);  // what died with it was generated again
  EXPECT_GE(of.seconds, made(small(1, 3)).seconds);
}

TEST(Forecast, SharedCoresSlowBothDown) {
  ForecastConfig config = small(1);
  config.host_cores = 1;
  const Forecast of = made(config);
  EXPECT_NEAR(of.seconds, 100, 3);
  config.host_cores = 2;
  EXPECT_NEAR(made(config).seconds, 51, 0.5);
}

// On one core the learner's second takes longer by as much as the rollout works beside it, and a
// decode step that is under way is slower from the moment when the learner begins.
TEST(Forecast, SharedCoresAreSharedByTheMoment) {
  ForecastConfig config = small(1);
  config.lengths = *Lengths::parse("constant(1)");
  config.rollouts = {{.step_s = 0.5}};
  config.exchange.budget.steps_total = 50;
  config.host_cores = 1;
  const Forecast of = made(config);
  EXPECT_NEAR(of.seconds, 50 * 1.5, 0.6);  // all the work, one after the other
  EXPECT_NEAR(of.step_seconds, 1.5, 0.05);
}

TEST(Forecast, ScoringUsesSharedCoresToo) {
  ForecastConfig config = small(0);
  config.reward = {.score_s = 1, .threads = 2};
  config.host_cores = 1;
  EXPECT_NEAR(made(config).seconds, 50 * (1 + 1 + 2), 1);
  config.reward.threads = 0;  // it waits for something else
  EXPECT_NEAR(made(config).seconds, 50 * (1 + 1 + 1), 1);
}

// The reward scores one group after the other and is the bottleneck, while the others keep the
// cores busy for two thirds of its time.
TEST(Forecast, AScoreWithoutThreadsIsNotSlowedByTheOthers) {
  ForecastConfig config = small(4);
  config.host_cores = 0.75;
  config.reward = {.score_s = 1, .capacity = 1};
  EXPECT_NEAR(made(config).seconds, 50 * 4, 8);
}

TEST(Forecast, AShareOfGroupsWithoutVarianceIsReplacedWhereTheJobFilters) {
  ForecastConfig config = small(1);
  config.exchange.filter_groups.enable = true;
  config.reward.zero_variance = 0.3;
  const Forecast of = made(config);
  EXPECT_EQ(of.groups_trained, 200);
  ASSERT_EQ(of.groups_discarded.size(), 1u);
  EXPECT_EQ(of.groups_discarded[0].first, "zero_variance");
  EXPECT_NEAR(static_cast<double>(of.groups_discarded[0].second), 0.3 / 0.7 * 200, 35);
}

// Two runs of one configuration are the same, and random ones end well within the bound of
// staleness.
TEST(Forecast, RandomFleetsRepeatAndKeepTheBound) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    ForecastConfig config = small(static_cast<std::int64_t>(rng.below(5)), 1 + rng.below(6));
    config.seed = seed;
    config.lengths = *Lengths::parse("lognormal(60,0.99,200)");
    config.exchange.budget.steps_total = 20;
    config.exchange.fixed_lag = rng.below(3) == 0;
    config.rollout.partial_rollout = rng.below(2) == 0;
    config.rollout.recompute_kv = rng.below(2) == 0;
    config.rollout.prompt_tokens = static_cast<std::int32_t>(rng.below(50));
    for (EngineCosts& engine : config.rollouts)
      engine = {.step_s = 0.01 * rng.unit() + 0.001,
                .sequence_s = 0.001 * rng.unit(),
                .context_token_s = 1e-6 * rng.unit(),
                .prompt_token_s = 1e-4 * rng.unit(),
                .install_s = 0.1 * rng.unit(),
                .fetch_s = 0.1 * rng.unit()};
    config.learner = {.step_s = rng.unit(), .turnaround_s = 0.01, .save_s = 0.1};
    config.exchange.save.steps = 5;
    config.reward.score_s = 0.05 * rng.unit();
    if (rng.below(2) == 0) config.failures.rollout_mtbf_s = 20;
    const Forecast first = made(config), second = made(config);
    ASSERT_EQ(first.steps.size(), 20u);
    EXPECT_EQ(first.seconds, second.seconds);
    EXPECT_EQ(first.staleness, second.staleness);
    EXPECT_LE(first.staleness.back().first, config.exchange.budget.max_staleness);
    EXPECT_GE(first.staleness.front().first, 0);
    EXPECT_GE(first.trainer_idle_fraction, 0);
    EXPECT_LE(first.trainer_idle_fraction, 1);
    EXPECT_GE(first.tokens_generated, first.tokens_trained);
    EXPECT_EQ(first.groups_trained, 80);
  }
}

TEST(Forecast, EndsWhereTheCallerSaysSo) {
  const auto ended = forecast(small(1), [](std::int64_t step) { return step < 3; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kFailed);
}

TEST(Forecast, AFleetThatNeverGeneratesTimesOut) {
  ForecastConfig config = small(1);
  config.rollout.capacity = 1;  // a group has two completions
  const auto stuck = forecast(config);
  ASSERT_FALSE(stuck);
  EXPECT_EQ(stuck.error().code, ErrorCode::kTimedOut);
  // Whoever waits for it may end it.
  int asked = 0;
  const auto ended = forecast(config, [&](std::int64_t) { return ++asked < 1; });
  ASSERT_FALSE(ended);
}

}  // namespace
}  // namespace tandem::forecast
