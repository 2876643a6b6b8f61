// Tests actors/main/simulate_report.h.
#include "actors/main/simulate_report.h"

#include <gtest/gtest.h>

#include "actors/cli/table.h"

namespace tandem::app {
namespace {

// 8 steps of 10 s after a first batch of 40 s; the learner trains 8 s of each.
SimulatedVariant variant_of(const std::string& name) {
  SimulatedVariant variant{.name = name, .sets = {"async.max_staleness=1"}};
  forecast::Forecast& of = variant.forecast;
  for (int i = 1; i <= 8; ++i)
    of.steps.push_back({.at_s = 40.0 + 10 * i,
                        .queue_depth = 4,
                        .oldest_age_steps = 1,
                        .trainer_idle_fraction = 1 - 8.0 * i / (40 + 10 * i),
                        .training_s = 8.0 * i,
                        .rollouts_busy_s = 9.0 * i,
                        .rollouts_up_s = 40.0 + 10 * i,
                        .tokens_trained = 1000 * i});
  of.steady = forecast::steady_part(of.steps);
  of.seconds = 120;
  of.trainer_idle_fraction = 1 - 64.0 / 120;
  of.tokens_trained = 8000;
  of.staleness = {{0, 16}, {1, 48}};
  of.staleness_mean = 0.75;
  of.groups_trained = 32;
  of.groups_discarded = {{"reward_failed", 2}, {"zero_variance", 12}};
  return variant;
}

TEST(SimulateReport, TablesHaveWholeRunsSteadyPartsAndAges) {
  SimulatedVariant older = variant_of("K = 12");
  older.forecast.staleness = {{0, 1}, {9, 1}, {12, 2}};
  older.forecast.groups_discarded.clear();
  SimulatedVariant brief = variant_of("brief");
  brief.forecast.steady.reset();
  EXPECT_EQ(
      simulate_tables({variant_of("K = 1"), older, brief}, cli::kUnlimitedWidth),
      R"(VARIANT  S/STEP  STEPS/H  TRAINER IDLE  ROLLOUT IDLE  TOKENS/S      STALENESS  QUEUE  OLDEST                          DISCARDED  COST/STEP
K = 1      15.0    240.0         46.7%          0.0%        67   0.75, most 1   4.00       1  2 reward_failed, 12 zero_variance          -
K = 12     15.0    240.0         46.7%          0.0%        67  0.75, most 12   4.00       1                                  0          -
brief      15.0    240.0         46.7%          0.0%        67   0.75, most 1   4.00       1  2 reward_failed, 12 zero_variance          -

STEADY PART        STEPS  S/STEP  STEPS/H  TRAINER IDLE  ROLLOUT IDLE  TOKENS/S
K = 1        3 to 6 of 8    10.0    360.0         20.0%         10.0%       100
K = 12       3 to 6 of 8    10.0    360.0         20.0%         10.0%       100

STALENESS      0      1  2  3  4  5  6  7  8     9+
K = 1      25.0%  75.0%  -  -  -  -  -  -  -      -
K = 12     25.0%      -  -  -  -  -  -  -  -  75.0%
brief      25.0%  75.0%  -  -  -  -  -  -  -      -
)");
}

TEST(SimulateReport, JsonHasTheSteadyPartAndTheReasonsOfDiscards) {
  const nlohmann::json shown = simulate_json(variant_of("K = 1"));
  EXPECT_EQ(shown["steady"]["first_step"], 3);
  EXPECT_EQ(shown["steady"]["last_step"], 6);
  EXPECT_EQ(shown["steady"]["seconds"], 40.0);
  EXPECT_EQ(shown["steady"]["seconds_per_step"], 10.0);
  EXPECT_EQ(shown["steady"]["steps_per_hour"], 360.0);
  EXPECT_EQ(shown["steady"]["tokens_trained_per_s"], 100.0);
  EXPECT_NEAR(shown["steady"]["trainer_idle_fraction"].get<double>(), 0.2, 1e-9);
  EXPECT_NEAR(shown["steady"]["rollout_idle_fraction"].get<double>(), 0.1, 1e-9);
  EXPECT_EQ(shown["groups_discarded"], 14);
  EXPECT_EQ(shown["groups_discarded_by_reason"],
            (nlohmann::json{{"reward_failed", 2}, {"zero_variance", 12}}));
  EXPECT_EQ(shown["staleness"]["histogram"], (nlohmann::json{{"0", 16}, {"1", 48}}));
  SimulatedVariant brief = variant_of("brief");
  brief.forecast.steady.reset();
  EXPECT_TRUE(simulate_json(brief)["steady"].is_null());
}

}  // namespace
}  // namespace tandem::app
