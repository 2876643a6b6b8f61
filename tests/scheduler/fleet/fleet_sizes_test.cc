// Tests scheduler/fleet/fleet_sizes.h, fleet_cost.h.
#include "scheduler/fleet/fleet_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/fleet/fleet_cost.h"
#include "tests/scheduler/fleet/random_fleet.h"

namespace tandem::scheduler {
namespace {

const FleetModel kExample{.rollouts_per_s = {4000},
                          .step_seconds = 20,
                          .step_tokens = 786432,
                          .completions_per_step = 512};

TEST(FleetSizes, ThoseAroundThePresentAndTheMatchedOne) {
  std::vector<std::int64_t> counts;
  for (const SteadyState& fleet : fleets_around(kExample, 8, 13)) counts.push_back(fleet.rollouts);
  EXPECT_EQ(counts, (std::vector<std::int64_t>{7, 8, 9, 11, 12, 13, 14, 15}));
  EXPECT_EQ(fleets_around(kExample, std::nullopt, 1).size(), 3u) << "1, 2 and 3";
}

TEST(FleetSizes, AlwaysHaveThePresentAndTheMatchedOneAscending) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    const FleetModel model = random_model(rng);
    const std::int64_t matched = matched_rollouts(model);
    const auto present = static_cast<std::int64_t>(1 + rng.below(50));
    const auto fleets = fleets_around(model, present, matched);
    const auto count = [](const SteadyState& fleet) { return fleet.rollouts; };
    EXPECT_TRUE(std::ranges::is_sorted(fleets, std::ranges::less{}, count));
    EXPECT_EQ(std::ranges::count(fleets, present, count), 1);
    EXPECT_EQ(std::ranges::count(fleets, matched, count), 1);
    EXPECT_GE(fleets.front().rollouts, 1);
    EXPECT_LE(fleets.size(), 8u);
  }
}

TEST(FleetSizes, VerdictByTheArithmeticAlone) {
  EXPECT_EQ(verdict_on({.present = 8, .matched = 13}), FleetVerdict::kUndersized);
  EXPECT_EQ(verdict_on({.present = 13, .matched = 13}), FleetVerdict::kMatched);
  EXPECT_EQ(verdict_on({.present = 15, .matched = 13}), FleetVerdict::kOversized);
}

// A trainer that was measured to wait less than the target has enough rollouts.
TEST(FleetSizes, AMeasuredTrainerOutweighsTheArithmetic) {
  const auto verdict = [](std::int64_t present, double idle) {
    return verdict_on({.present = present, .matched = 13, .measured_trainer_idle = idle});
  };
  EXPECT_EQ(verdict(8, 0.2), FleetVerdict::kUndersized);
  EXPECT_EQ(verdict(11, 0.01), FleetVerdict::kMatched);
  EXPECT_EQ(verdict(13, 0.05), FleetVerdict::kMatched);
  EXPECT_EQ(verdict(13, 0.051), FleetVerdict::kUnexplained);
  EXPECT_EQ(verdict(15, 0.2), FleetVerdict::kUnexplained);
  EXPECT_EQ(verdict(15, 0.0), FleetVerdict::kOversized);
}

TEST(FleetSizes, FewMeasuredStepsAreNoVerdict) {
  const auto verdict = [](std::optional<std::int64_t> steps) {
    return verdict_on({.present = 13, .matched = 13, .steps = steps});
  };
  EXPECT_EQ(verdict(kStepsJudged - 1), FleetVerdict::kUncertain);
  EXPECT_EQ(verdict(kStepsJudged), FleetVerdict::kMatched);
  EXPECT_EQ(verdict(std::nullopt), FleetVerdict::kMatched) << "the figures are given";
}

// Where generation and training take turns the trainer always waits.
TEST(FleetSizes, WithoutOverlapTheNumberDecides) {
  const auto verdict = [](std::int64_t present) {
    return verdict_on(
        {.present = present, .matched = 4, .measured_trainer_idle = 0.4, .overlaps = false});
  };
  EXPECT_EQ(verdict(3), FleetVerdict::kUndersized);
  EXPECT_EQ(verdict(4), FleetVerdict::kMatched);
  EXPECT_EQ(verdict(5), FleetVerdict::kOversized);
}

// 13 rollouts at 2.10 and one rank at 4.00 cost 31.30 an hour, for 180 steps of 512 completions.
TEST(FleetSizes, CostPerStepDayAndThousandCompletions) {
  const FleetPrice prices{.prices = {.rollout = 2.10, .learner = 4.00}};
  const FleetCost cost = cost_of(prices, steady_state(kExample, 13), 1);
  EXPECT_NEAR(cost.per_hour, 31.30, 1e-9);
  EXPECT_NEAR(cost.per_step, 31.30 / 180, 1e-9);
  EXPECT_NEAR(cost.per_day, 31.30 * 24, 1e-9);
  EXPECT_NEAR(cost.per_thousand_completions, 31.30 / 180 / 512 * 1000, 1e-9);
  const FleetPrice shared{.prices = prices.prices, .devices_per_rollout = 0.5};
  EXPECT_NEAR(cost_of(shared, steady_state(kExample, 13), 2).per_hour, 13 * 1.05 + 8, 1e-9);
  FleetModel uncounted = kExample;
  uncounted.completions_per_step = 0;
  EXPECT_EQ(cost_of(prices, steady_state(uncounted, 13), 1).per_thousand_completions, 0.0);
}

}  // namespace
}  // namespace tandem::scheduler
