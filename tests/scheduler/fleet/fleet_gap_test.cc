#include "scheduler/fleet/fleet_gap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

// Steps of a second and 100 tokens, by rollouts of 40 tokens/s.
FleetRates rates_of_fleet(std::size_t rollouts, double idle) {
  FleetRates rates{.steps = 16,
                   .step_seconds = 1,
                   .step_tokens = 100,
                   .completions_per_step = 8,
                   .trainer_idle_fraction = idle};
  rates.seconds = 16 / (1 - idle);
  for (std::size_t i = 0; i < rollouts; ++i)
    rates.rollouts.push_back({.actor = "r/" + std::to_string(i), .tokens_per_s = 40});
  return rates;
}

WaitSeconds wait_for(TrainerWait what, double seconds) {
  WaitSeconds waits{};
  waits[static_cast<std::size_t>(what)] = seconds;
  return waits;
}

FleetRates waiting(FleetRates rates, const WaitSeconds& waits) {
  rates.waits = waits;
  return rates;
}

std::string said_of(const FleetView& fleet) {
  const auto gap = gap_of(fleet);
  return gap ? text(*gap, "arith-1").value_or("nothing") : "no gap";
}

TEST(FleetGap, SaysHowManyRolloutsWouldMatch) {
  const FleetRates rates = waiting(rates_of_fleet(2, 0.21), wait_for(TrainerWait::kSamples, 0.27));
  EXPECT_EQ(said_of({.rates = rates, .rollouts = 2}),
            "trainer idle 21 % (predicted 20 %): 4 rollouts would match it, 2 are up: tandem scale "
            "arith-1 rollout=4");
  EXPECT_EQ(said_of({.rates = rates_of_fleet(1, 0.6), .rollouts = 1}),
            "trainer idle 60 % (predicted 60 %): 4 rollouts would match it, 1 is up: tandem scale "
            "arith-1 rollout=4");
}

TEST(FleetGap, NamesNoNumberWhereAutoscaleDecides) {
  EXPECT_EQ(said_of({.rates = rates_of_fleet(2, 0.21), .rollouts = 2, .autoscaled = true}),
            "trainer idle 21 % (predicted 20 %): more rollouts would match it, 2 are up: autoscale "
            "decides, unless it is off (tandem describe arith-1)");
}

TEST(FleetGap, SaysNothingOfATrainerThatIsHardlyIdleOrHasJustBegun) {
  EXPECT_EQ(said_of({.rates = rates_of_fleet(4, 0.05), .rollouts = 4}), "nothing");
  FleetRates rates = rates_of_fleet(2, 0.21);
  rates.steps = kStepsJudged - 1;
  EXPECT_EQ(said_of({.rates = rates, .rollouts = 2}), "nothing");
}

TEST(FleetGap, NamesWhatThePredictionDoesNotKnow) {
  const auto said = [](TrainerWait wait, auto&&... change) {
    FleetRates rates = rates_of_fleet(4, 0.3);
    (change(rates), ...);
    return said_of({.rates = waiting(rates, wait_for(wait, 0.43)), .rollouts = 4});
  };
  const auto all = [](const std::string& why) { return "predicted 0 %, measured 30 %: " + why; };
  EXPECT_EQ(said(TrainerWait::kCheckpoint), all("checkpoints take 0.43 s of each step"));
  EXPECT_EQ(said(TrainerWait::kLearner), all("the learner was not up for 0.43 s of each step"));
  EXPECT_EQ(said(TrainerWait::kEvaluation), all("evaluations hold it up for 0.43 s of each step"));
  EXPECT_EQ(said(TrainerWait::kRollouts), all("no rollout was up for 0.43 s of each step"));
  EXPECT_EQ(said(TrainerWait::kScores),
            all("it waits for scores for 0.43 s of each step: more reward actors, "
                "or a faster reward"));
  EXPECT_EQ(said(TrainerWait::kWeights),
            all("rollouts wait for the new weights for 0.43 s of each step"));
  EXPECT_EQ(said(TrainerWait::kLast),
            all("it waits for the last completions of a step for 0.43 s of each step, "
                "while async.max_staleness holds further groups back"));
  const auto idle = [](FleetRates& rates) { rates.rollout_idle_fraction = 0.4; };
  EXPECT_EQ(said(TrainerWait::kSamples, idle),
            all("the rollouts' engines are idle for 40 % of their time"));
  const auto die = [](FleetRates& rates) { rates.rollout_deaths = 3; };
  EXPECT_EQ(said(TrainerWait::kSamples, idle, die), all("rollouts ended 3 times in 16 steps"));
}

// Full rollouts that starve are no spare capacity: the key that keeps them so is named.
TEST(FleetGap, NamesTheKeyThatKeepsWorkFromTheRollouts) {
  const auto said = [](TrainerWait wait, const WorkLimits& limits) {
    FleetRates rates = waiting(rates_of_fleet(4, 0.71), wait_for(wait, 2.4));
    rates.rollout_idle_fraction = 0.91;
    return said_of({.rates = rates, .rollouts = 4, .limits = limits});
  };
  WorkLimits limits{.sequences_max = 8,
                    .completions_per_prompt = 8,
                    .prompts_per_step = 64,
                    .lookahead = 1,
                    .max_staleness = 2};
  const std::string starved =
      "predicted 0 %, measured 71 %: the rollouts' engines are idle for 91 % of their time while "
      "groups wait for them: each has all that ";
  EXPECT_EQ(said(TrainerWait::kSamples, limits),
            starved + "rollout.max_num_seqs: 8 lets it have: raise it to about 40");
  EXPECT_EQ(said(TrainerWait::kLast, limits),
            "predicted 0 %, measured 71 %: it waits for the last completions of a step for 2.4 s "
            "of each step, while async.lookahead: 1 holds further groups back: raise it to 2");
  limits.held_max = 8;
  limits.sequences_max = 512;
  EXPECT_EQ(said(TrainerWait::kSamples, limits),
            starved + "async.max_concurrent_rollouts: 8 lets it have: raise it to about 40");
  limits.lookahead = 2;
  EXPECT_EQ(said(TrainerWait::kLast, limits),
            "predicted 0 %, measured 71 %: it waits for the last completions of a step for 2.4 s "
            "of each step, while async.max_staleness: 2 holds further groups back: raise it to 3, "
            "if the recipe bears it");
}

TEST(FleetGap, NamesThePauseOfInstalls) {
  FleetRates rates = rates_of_fleet(5, 0.3);
  for (RolloutRate& rollout : rates.rollouts) rollout.install_fraction = 0.28;
  rates.waits = wait_for(TrainerWait::kWeights, 0.43);
  EXPECT_EQ(said_of({.rates = rates, .rollouts = 5}),
            "predicted 0 %, measured 30 %: the install pause is 0.4 s of each step");
}

TEST(FleetGap, NamesBothWhereMoreRolloutsAreNotAll) {
  WaitSeconds waits = wait_for(TrainerWait::kScores, 0.6);
  waits[static_cast<std::size_t>(TrainerWait::kSamples)] = 0.4;  // of which 0.25 s are predicted
  EXPECT_EQ(said_of({.rates = waiting(rates_of_fleet(2, 0.5), waits), .rollouts = 2}),
            "trainer idle 50 % (predicted 20 %): 4 rollouts would match it, 2 are up: tandem scale "
            "arith-1 rollout=4; beside that, it waits for scores for 0.6 s of each step: more "
            "reward actors, or a faster reward");
}

// Without overlap the wait for rollouts is no fault of theirs, and soon no number of them helps.
TEST(FleetGap, TakesTurnsWhereNothingOverlaps) {
  FleetRates rates = rates_of_fleet(2, 0.56);
  rates.waits = wait_for(TrainerWait::kLast, 1.27);
  const FleetView few{.rates = rates, .overlaps = false, .rollouts = 2};
  ASSERT_TRUE(gap_of(few));
  EXPECT_NEAR(gap_of(few)->trainer_idle_fraction, 1.25 / 2.25, 1e-12);
  EXPECT_FALSE(gap_of(few)->cause) << "the last groups are all groups";
  EXPECT_NE(said_of(few).find("rollouts would match it, 2 are up"), std::string::npos);
  rates = rates_of_fleet(50, 0.06);
  EXPECT_EQ(said_of({.rates = rates, .overlaps = false, .rollouts = 50}),
            "trainer idle 6 % (predicted 5 %): with async.max_staleness 0 it waits while rollouts "
            "generate, and more of them would hardly shorten that");
}

TEST(FleetGap, TooLittleIsNoPrediction) {
  const FleetRates rates = rates_of_fleet(2, 0.2);
  EXPECT_FALSE(gap_of({.rates = rates, .rollouts = 0}));
  for (auto const member : {&FleetRates::step_seconds, &FleetRates::step_tokens}) {
    FleetRates none = rates;
    none.*member = 0;
    EXPECT_FALSE(gap_of({.rates = none, .rollouts = 2}));
  }
  EXPECT_FALSE(gap_of({.rates = rates_of_fleet(0, 0.2), .rollouts = 2}));
  EXPECT_FALSE(gap_of({.rates = {}, .rollouts = 2}));
}

TEST(FleetGap, RatesThatNoArithmeticCanUseAreNoPrediction) {
  FleetRates slow = rates_of_fleet(2, 0.2);
  for (RolloutRate& rollout : slow.rollouts) rollout.tokens_per_s = 1e-300;
  EXPECT_FALSE(gap_of({.rates = slow, .rollouts = 2}));
  FleetRates wasteful = rates_of_fleet(2, 0.2);
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    wasteful.generated_per_trained = bad;
    EXPECT_FALSE(gap_of({.rates = wasteful, .rollouts = 2}));
  }
}

// Whatever was measured, nothing fails, and fractions are fractions.
TEST(FleetGap, HoldsForRatesOfAnyRun) {
  for_seeds(500, [](std::uint64_t seed) {
    Rng rng(derive_seed(seed, "gap"));
    const auto part = [&] { return static_cast<double>(rng.below(1001)) / 1000; };
    FleetRates rates = rates_of_fleet(rng.below(5), part() * 0.99);
    rates.step_seconds = part() * 30;
    rates.step_tokens = part() * 1e6;
    rates.generated_per_trained = 1 + part() * 20;
    for (RolloutRate& rollout : rates.rollouts) {
      rollout.tokens_per_s = 0.01 + part() * 5000;
      rollout.install_fraction = part();
    }
    WaitSeconds waits{};
    for (double& wait : waits) wait = part() * 10;
    rates.waits = waits;
    const auto gap = gap_of({.rates = rates,
                             .overlaps = rng.below(2) == 0,
                             .rollouts = static_cast<std::int64_t>(rng.below(6)),
                             .limits = {.sequences_max = 8, .lookahead = 1, .max_staleness = 2}});
    if (!gap) return;
    for (const double fraction : {gap->trainer_idle_fraction, gap->rollout_idle_fraction}) {
      EXPECT_GE(fraction, 0);
      EXPECT_LE(fraction, 1);
    }
    EXPECT_GE(gap->rollouts_matched, 1);
    if (const auto said = text(*gap, "j")) {
      EXPECT_NE(said->find("predicted"), std::string::npos);
    }
  });
}

}  // namespace
}  // namespace tandem::scheduler
