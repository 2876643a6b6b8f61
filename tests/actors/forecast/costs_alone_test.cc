// Tests actors/forecast/costs_alone.h.
#include "actors/forecast/costs_alone.h"

#include <gtest/gtest.h>

#include "actors/forecast/forecast.h"
#include "runtime/base/log.h"

namespace tandem::forecast {
namespace {

const bool kMuted = (log::mute(), true);

scheduler::FleetRates rates_of(double trainer_idle, double busy, std::size_t rollouts = 1) {
  scheduler::FleetRates rates{.steps = 10,
                              .seconds = 10,
                              .rollouts = {},
                              .step_seconds = 0.13,
                              .step_tokens = 1000,
                              .completions_per_step = 8,
                              .engine = {.step_s = 0.006, .sequence_s = 0.001},
                              .install_seconds = 0.01,
                              .prefix_hit_ratio = {},
                              .trainer_idle_fraction = trainer_idle,
                              .rollout_idle_fraction = 1 - busy};
  rates.rollouts.assign(rollouts, {.actor = "rollout", .tokens_per_s = 100, .busy_fraction = busy});
  return rates;
}

// The learner's step takes 0.10 s alone and 0.13 s beside one rollout: two threads have the work of
// 1.54 done.
TEST(CostsAlone, ALearnerBesideARolloutThatNeverWaits) {
  const SharedHost host{.cores = 2 * 0.10 / 0.13};
  const auto alone = rates_alone(rates_of(0, 1), host);
  EXPECT_NEAR(alone.step_seconds, 0.10, 1e-9);
  EXPECT_NEAR(alone.engine.step_s, 0.006 / 1.3, 1e-9);
  EXPECT_NEAR(alone.install_seconds, 0.01 / 1.3, 1e-9);
  EXPECT_NEAR(alone.rollouts[0].tokens_per_s, 130, 1e-9);
}

TEST(CostsAlone, ChangesNothingWhereNobodyWaits) {
  for (const double cores : {0.0, 2.0})
    EXPECT_EQ(rates_alone(rates_of(0, 1), {.cores = cores}).step_seconds, 0.13);
  // They take turns.
  const auto alone = rates_alone(rates_of(0.5, 0.5), {.cores = 1, .overlaps = false});
  EXPECT_EQ(alone.step_seconds, 0.13);
  EXPECT_EQ(alone.engine.step_s, 0.006);
}

TEST(CostsAlone, RolloutsThatTakeTurnsWithTheLearnerShareWithEachOther) {
  const auto alone = rates_alone(rates_of(0.5, 0.5, 4), {.cores = 2, .overlaps = false});
  EXPECT_EQ(alone.step_seconds, 0.13);
  EXPECT_NEAR(alone.engine.step_s, 0.003, 1e-9);
}

// A forecast on shared cores, measured as a run is, gives its own costs back: to a seventh, since
// rollouts that install one version at one moment are not independent of each other.
TEST(CostsAlone, AForecastOnSharedCoresGivesItsCostsBack) {
  for (const double learner_s : {0.2, 0.9, 3.0})
    for (const double cores : {1.0, 1.5, 2.0, 3.0})
      for (const std::size_t rollouts : {1u, 2u}) {
        SCOPED_TRACE(std::to_string(learner_s) + " s, " + std::to_string(cores) + " cores, " +
                     std::to_string(rollouts) + " rollouts");
        ForecastConfig config{.exchange = {},
                              .rollouts = {},
                              .rollout = {},
                              .learner = {.step_s = learner_s},
                              .reward = {},
                              .failures = {},
                              .host_cores = cores,
                              .lengths = *Lengths::parse("uniform(50,150)")};
        config.exchange.budget = {
            .max_staleness = 2, .lookahead = 2, .groups_per_step = 8, .steps_total = 60};
        config.exchange.n = 2;
        config.rollouts.assign(rollouts, {.step_s = 0.01});
        config.rollout.capacity = config.rollout.max_num_seqs = 16;
        config.rollout.response_most = 200;
        const auto of = forecast(config);
        ASSERT_TRUE(of) << of.error().message;
        scheduler::FleetRates rates =
            rates_of(of->trainer_idle_fraction, 1 - of->rollout_idle_fraction, rollouts);
        rates.step_seconds = of->step_seconds;
        const auto alone = rates_alone(rates, {.cores = cores});
        EXPECT_NEAR(alone.step_seconds, learner_s, learner_s / 7);
      }
}

}  // namespace
}  // namespace tandem::forecast
