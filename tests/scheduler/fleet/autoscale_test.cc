#include "scheduler/fleet/autoscale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/rng.h"

namespace tandem::scheduler {
namespace {

using namespace std::chrono_literals;
using Hold = AutoscaleHold;

// A job whose trainer takes 512 samples of 1,536 tokens in 20 s, and whose rollouts give 4,000
// tokens/s each: 13 match it.
AutoscaleInput job_of(std::int64_t rollouts, double speed = 1) {
  AutoscaleInput input{.wanted = rollouts, .up = rollouts, .room = 1000};
  input.rates = {.steps = 32,
                 .seconds = 32 * 20.0,
                 .rollouts = {},
                 .step_seconds = 20,
                 .step_tokens = 512 * 1536.0,
                 .completions_per_step = 512};
  for (std::int64_t i = 0; i < rollouts; ++i)
    input.rates.rollouts.push_back(
        {.actor = "rollout/" + std::to_string(i), .tokens_per_s = 4000 * speed});
  const SteadyState state = steady_state(model_of(input.rates, true), rollouts);
  input.rates.trainer_idle_fraction = state.trainer_idle_fraction;
  input.rates.rollout_idle_fraction = state.rollout_idle_fraction;
  return input;
}
constexpr AutoscaleConfig kConfig{.min = 2, .max = 40, .cooldown = 300s};
AutoscaleDecision decide(const AutoscaleInput& input, const AutoscaleState& state = {},
                         const AutoscaleConfig& config = kConfig) {
  return autoscale(config, state, input, Time{} + 1h);
}

TEST(Autoscale, TooFewRolloutsBecomeTheMatchedNumber) {
  const AutoscaleDecision decision = decide(job_of(8));
  EXPECT_EQ(decision.hold, Hold::kChanges);
  EXPECT_EQ(decision.wanted, 13);
  EXPECT_EQ(decision.matched, 13);
  EXPECT_FALSE(decision.at_limit);
  EXPECT_EQ(decision.reason,
            "trainer idle 19 % over 32 steps, 13 would match (39322 tokens/s trained, 4000 of a "
            "rollout, headroom 80 %)");
}

TEST(Autoscale, TooManyBecomeFewerAfterTwoWindowsThatSaySo) {
  const AutoscaleDecision first = decide(job_of(20));
  EXPECT_EQ(first.hold, Hold::kOneWindow);
  const AutoscaleState state = after_window(kConfig, {}, job_of(20), first, false, Time{});
  const AutoscaleDecision second = decide(job_of(20), state);
  EXPECT_EQ(second.hold, Hold::kChanges);
  EXPECT_EQ(second.wanted, 13);
}

TEST(Autoscale, WithinToleranceNothingChanges) {
  for (const std::int64_t rollouts : {11, 12, 13, 14}) {
    const AutoscaleDecision decision = decide(job_of(rollouts), {.matched = 13});
    EXPECT_EQ(decision.hold, Hold::kWithinTolerance) << rollouts << ": " << decision.reason;
    EXPECT_EQ(decision.wanted, rollouts);
  }
}

TEST(Autoscale, LimitsHold_AS2) {
  const AutoscaleDecision by_max = decide(job_of(4), {}, {.min = 1, .max = 6});
  EXPECT_EQ(by_max.wanted, 6);
  EXPECT_TRUE(by_max.at_limit);
  EXPECT_TRUE(by_max.reason.ends_with(", and max is 6")) << by_max.reason;
  const AutoscaleDecision there = decide(job_of(6), {}, {.min = 1, .max = 6});
  EXPECT_EQ(there.hold, Hold::kAtLimit);
  EXPECT_TRUE(there.at_limit);
  AutoscaleInput little = job_of(4);
  little.room = 3;
  EXPECT_EQ(decide(little).wanted, 7);
  EXPECT_TRUE(decide(little).reason.ends_with(", and there is room for 3 more"));
  little.room = 0;
  EXPECT_EQ(decide(little).hold, Hold::kAtLimit);
  EXPECT_EQ(decide(job_of(20), {.matched = 13}, {.min = 16, .max = 40}).wanted, 16);
  EXPECT_EQ(decide(job_of(16), {.matched = 13}, {.min = 16, .max = 40}).hold, Hold::kAtLimit);
  EXPECT_FALSE(decide(job_of(16), {.matched = 13}, {.min = 16, .max = 40}).at_limit);
  EXPECT_EQ(decide(job_of(8), {}, {.min = 10, .max = 40}).wanted, 10);
  EXPECT_EQ(decide(job_of(50), {}, {.min = 10, .max = 40}).wanted, 40);
}

// A user may have left fewer than min.
TEST(Autoscale, MinAsksForNoMoreThanFindRoom_AS2) {
  AutoscaleInput input = job_of(8);
  input.room = 1;
  const AutoscaleDecision one = decide(input, {}, {.min = 10, .max = 40});
  EXPECT_EQ(one.wanted, 9);
  EXPECT_TRUE(one.at_limit);
  EXPECT_TRUE(one.reason.ends_with("outside of min 10 and max 40, and there is room for 1 more"))
      << one.reason;
  input.room = 0;
  const AutoscaleDecision none = decide(input, {}, {.min = 10, .max = 40});
  EXPECT_EQ(none.hold, Hold::kAtLimit);
  EXPECT_EQ(none.wanted, 8);
  EXPECT_TRUE(none.at_limit);
}

TEST(Autoscale, NothingWhileTheTrainerIsInTrouble_AS3) {
  for (const TrainerHealth trouble :
       {TrainerHealth::kCrashLoop, TrainerHealth::kDown, TrainerHealth::kSilent,
        TrainerHealth::kSkipsSteps, TrainerHealth::kEvaluates}) {
    AutoscaleInput input = job_of(4);
    input.trainer = trouble;
    const AutoscaleDecision decision = decide(input);
    EXPECT_EQ(decision.hold, Hold::kTrainer);
    EXPECT_EQ(decision.wanted, 4);
  }
}

TEST(Autoscale, NothingWhileWeightsAreTheStall_AS3) {
  AutoscaleInput input = job_of(8);
  for (RolloutRate& rollout : input.rates.rollouts) rollout.install_fraction = 0.3;
  EXPECT_EQ(decide(input).hold, Hold::kWeights);
  // 10 % of pauses are little, but without them 11 rollouts would do.
  AutoscaleInput near = job_of(10);
  for (RolloutRate& rollout : near.rates.rollouts) rollout.install_fraction = 0.2;
  near.rates.trainer_idle_fraction =
      steady_state(model_of(near.rates, true), 10).trainer_idle_fraction;
  EXPECT_EQ(decide(near).hold, Hold::kWeights);
}

TEST(Autoscale, WaitsThatAreNotForWantOfRolloutsAddNone) {
  AutoscaleInput input = job_of(13);
  input.rates.trainer_idle_fraction = 0.3;
  EXPECT_EQ(decide(input).hold, Hold::kOtherCause);
  AutoscaleInput more = job_of(20);
  more.rates.trainer_idle_fraction = 0.3;
  EXPECT_EQ(decide(more, {.matched = 13}).hold, Hold::kOtherCause);
}

TEST(Autoscale, RolloutsThatStartAreWaitedFor) {
  AutoscaleInput input = job_of(8);
  input.up = 5;
  EXPECT_EQ(decide(input).hold, Hold::kStarting);
}

TEST(Autoscale, IncompleteAndEmptyWindowsSayNothing) {
  AutoscaleInput few = job_of(8);
  few.rates.steps = 31;
  EXPECT_EQ(decide(few).reason, "31 of the window's 32 steps");
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    AutoscaleInput input = job_of(8);
    input.rates.rollouts[3].tokens_per_s = bad;
    EXPECT_EQ(decide(input).hold, Hold::kWindow);
    input = job_of(8);
    input.rates.step_seconds = bad;
    EXPECT_EQ(decide(input).hold, Hold::kWindow);
  }
  AutoscaleInput none = job_of(8);
  none.rates.rollouts.clear();
  EXPECT_EQ(decide(none).hold, Hold::kWindow);
  // A number of rollouts that no integer holds.
  AutoscaleInput slow = job_of(8);
  for (RolloutRate& rollout : slow.rates.rollouts) rollout.tokens_per_s = 1e-300;
  EXPECT_EQ(decide(slow).hold, Hold::kWindow);
  EXPECT_NE(decide(slow).reason.find("more than 1048576 rollouts"), std::string::npos);
  AutoscaleInput wasteful = job_of(8);
  wasteful.rates.generated_per_trained = HUGE_VAL;
  EXPECT_EQ(decide(wasteful).hold, Hold::kWindow);
}

// Rollouts that share the same cores: each that is added slows the others.
TEST(Autoscale, RolloutsThatOnlySlowEachOtherAreNotAddedForEver) {
  std::int64_t rollouts = 2;
  AutoscaleState state;
  AutoscaleDecision decision;
  for (int window = 0; window < 50; ++window) {
    const AutoscaleInput input = job_of(rollouts, 2.0 / static_cast<double>(rollouts));
    const Time now = Time{} + window * 10min;
    decision = autoscale(kConfig, state, input, now);
    state = after_window(kConfig, state, input, decision, decision.hold == Hold::kChanges, now);
    rollouts = decision.wanted;
  }
  EXPECT_EQ(rollouts, 13) << decision.reason;
  EXPECT_EQ(decision.hold, Hold::kNoGain);
}

// A job in virtual time: its fleet follows the policy after a start of a few seconds, and each
// window gives the rates of its steady state with noise.
class Plant {
 public:
  struct Change {
    Time at;
    std::int64_t from, to;
  };

  Plant(std::uint64_t seed, AutoscaleConfig config, std::int64_t rollouts)
      : rng_(seed), config_(config), rollouts_(rollouts) {}

  double speed = 4000;   // tokens per second of a rollout
  double tokens = 1536;  // of a completion
  double per_token_s = 20.0 / (512 * 1536.0);
  double pause = 0, noise = 0;  // of each rate, as a standard deviation
  // Of its engines' rates, while they are at work, so much reaches the trainer.
  double delivered = 1;
  // Where a step takes time: that of an engine, of each of its sequences, and how many sequences
  // all rollouts run together. The speed is what follows from them.
  StepCosts engine;
  double sequences = 0;
  std::int64_t sequences_max = 0;  // of one engine; 0: any
  bool overlaps = true;
  std::int64_t room = 1000;
  TrainerHealth trainer = TrainerHealth::kHealthy;

  // One window with the lengths and rates as they are.
  AutoscaleDecision window() {
    if (engine.step_s > 0) speed = speed_of(rollouts_);
    FleetRates rates{.steps = config_.window_steps,
                     .seconds = 0,
                     .rollouts = {},
                     .step_seconds = 512 * tokens * per_token_s * drawn(),
                     .step_tokens = 512 * tokens * drawn(),
                     .completions_per_step = 512,
                     .generated_per_trained = 1 + 0.05 * rng_.unit()};
    for (std::int64_t i = 0; i < rollouts_; ++i)
      rates.rollouts.push_back({.actor = "rollout/" + std::to_string(i),
                                .tokens_per_s = speed * drawn(),
                                .install_fraction = pause,
                                .sequences = each_of(rollouts_)});
    rates.engine = engine;
    FleetModel model = model_of(rates, overlaps);
    for (double& rate : model.rollouts_per_s) rate *= delivered;
    const SteadyState steady = steady_state(model, rollouts_);
    rates.trainer_idle_fraction =
        std::clamp(steady.trainer_idle_fraction + noise * rng_.normal() / 2, 0.0, 1.0);
    rates.rollout_idle_fraction = steady.rollout_idle_fraction;
    rates.seconds = steady.cycle_seconds * static_cast<double>(rates.steps);
    now_ =
        now_ + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(rates.seconds));
    const AutoscaleInput input{.rates = rates,
                               .overlaps = overlaps,
                               .starved_fraction = 0.9 * rates.trainer_idle_fraction,
                               .wanted = rollouts_,
                               .up = rollouts_,
                               .room = std::max<std::int64_t>(0, room - rollouts_),
                               .sequences_max = sequences_max,
                               .trainer = trainer};
    const AutoscaleDecision decision = autoscale(config_, state_, input, now_);
    state_ = after_window(config_, state_, input, decision, true, now_);
    if (decision.wanted != rollouts_) changes.push_back({now_, rollouts_, decision.wanted});
    rollouts_ = decision.wanted;
    return decision;
  }
  std::int64_t rollouts() const { return rollouts_; }
  Time now() const { return now_; }
  double each_of(std::int64_t rollouts) const {
    const double each = sequences / static_cast<double>(rollouts);
    return sequences_max > 0 ? std::min(each, static_cast<double>(sequences_max)) : each;
  }
  double speed_of(std::int64_t rollouts) const {
    const double each = each_of(rollouts);
    return each / (engine.step_s + engine.sequence_s * each);
  }
  // With which the trainer would be matched without noise.
  double load() const { return 1 / per_token_s / (speed * (1 - pause) / 1.025 * config_.headroom); }
  std::vector<Change> changes;
  // Among the changes from this one on.
  int reversals(std::size_t from) const {
    int count = 0;
    for (std::size_t i = from + 1; i < changes.size(); ++i)
      count += (changes[i].to > changes[i].from) != (changes[i - 1].to > changes[i - 1].from);
    return count;
  }

 private:
  double drawn() { return std::max(0.2, 1 + noise * rng_.normal()); }

  Rng rng_;
  AutoscaleConfig config_;
  std::int64_t rollouts_;
  AutoscaleState state_;
  Time now_{};
};

// AS-1 and AS-2 for whatever the rates do, from wherever users have left the number.
TEST(Autoscale, RandomRatesNeverFlapNorLeaveTheLimits_AS1_AS2_AS3) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    AutoscaleConfig config{.min = 1 + static_cast<std::int64_t>(rng.below(5)),
                           .cooldown = std::chrono::seconds(rng.below(20'000))};
    config.max = config.min + static_cast<std::int64_t>(rng.below(60));
    Plant plant(
        seed, config,
        1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(config.max) + 10)));
    plant.room = 1 + static_cast<std::int64_t>(rng.below(50));
    plant.overlaps = rng.below(4) > 0;
    plant.noise = 0.3 * rng.unit();
    for (int i = 0; i < 200; ++i) {
      if (rng.below(10) == 0) plant.speed = 500 + 8000 * rng.unit();
      if (rng.below(10) == 0) plant.per_token_s = 5e-5 * (0.05 + rng.unit());
      if (rng.below(10) == 0) plant.pause = rng.below(2) ? 0.0 : 0.5 * rng.unit();
      plant.trainer = rng.below(10) == 0 ? TrainerHealth::kCrashLoop : TrainerHealth::kHealthy;
      const std::int64_t before = plant.rollouts();
      const AutoscaleDecision decision = plant.window();
      ASSERT_GE(plant.rollouts(), std::min({config.min, before, plant.room})) << decision.reason;
      ASSERT_LE(plant.rollouts(), std::max(config.max, before)) << decision.reason;
      ASSERT_LE(plant.rollouts(), std::max(before, plant.room)) << decision.reason;
      if (decision.hold == Hold::kChanges) {
        ASSERT_GE(plant.rollouts(), std::min(config.min, plant.room)) << decision.reason;
        ASSERT_LE(plant.rollouts(), config.max) << decision.reason;
      }
      if (plant.trainer != TrainerHealth::kHealthy || plant.pause >= 0.25) {
        ASSERT_EQ(plant.rollouts(), before) << decision.reason;
      }
      ASSERT_EQ(decision.hold == Hold::kChanges, plant.rollouts() != before);
      ASSERT_FALSE(decision.reason.empty());
    }
    for (std::size_t i = 1; i < plant.changes.size(); ++i) {
      const auto &one = plant.changes[i - 1], &next = plant.changes[i];
      if ((one.to > one.from) != (next.to > next.from)) {
        ASSERT_GE(next.at - one.at, config.cooldown) << "change " << i;
      }
    }
  }
}

TEST(Autoscale, NoisyRatesSettle_AS4) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Plant plant(seed, {.min = 1, .max = 200, .cooldown = 60s},
                1 + static_cast<std::int64_t>(rng.below(60)));
    plant.overlaps = rng.below(4) > 0;
    plant.speed = 1000 + 8000 * rng.unit();
    plant.noise = 0.03;
    for (int i = 0; i < 200; ++i) plant.window();
    EXPECT_LE(plant.reversals(0), 1) << "an overshoot by noise";
    EXPECT_LE(plant.changes.size(), 3U);
    if (!plant.overlaps) continue;
    EXPECT_GE(static_cast<double>(plant.rollouts()), 0.8 * plant.load());
    EXPECT_LE(static_cast<double>(plant.rollouts()), 1.2 * plant.load() + 1);
  }
}

TEST(Autoscale, AStepChangeOfLengthsIsFollowedWithinTwoWindows_AS5) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Plant plant(seed, {.min = 1, .max = 500, .cooldown = 10s},
                1 + static_cast<std::int64_t>(rng.below(60)));
    plant.noise = 0.02;
    for (int change = 0; change < 6; ++change) {
      // Longer sequences slow the engines more than the trainer.
      plant.tokens = 300 + 4000 * rng.unit();
      plant.speed = 7000 - plant.tokens;
      plant.window(), plant.window();
      const std::size_t there = plant.changes.size();
      EXPECT_GE(static_cast<double>(plant.rollouts()), 0.7 * plant.load());
      EXPECT_LE(static_cast<double>(plant.rollouts()), 1.3 * plant.load() + 1);
      for (int i = 0; i < 8; ++i) plant.window();
      EXPECT_LE(plant.reversals(there), 1);
      EXPECT_LE(plant.changes.size(), there + 2) << "the rest is tolerance";
    }
  }
}

// Too many rollouts run few sequences each and are slow for that alone: so many would always match.
TEST(Autoscale, AnOversizedStartIsLoweredWhereTheFixedPartOfAStepDominates) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const std::int64_t fit = 1 + static_cast<std::int64_t>(rng.below(10));
    Plant plant(seed, {.min = 1, .max = 64, .cooldown = 60s},
                fit + 1 + static_cast<std::int64_t>(rng.below(30)));
    plant.engine = {.step_s = 0.01, .sequence_s = 0.01 * rng.unit() / 16};
    plant.sequences = 16 * static_cast<double>(fit);
    // `fit` rollouts give what the trainer takes, with the headroom and the tolerance.
    plant.per_token_s = 1.2 / (0.8 * static_cast<double>(fit) * plant.speed_of(fit));
    plant.noise = 0.01;
    for (int i = 0; i < 6; ++i) plant.window();
    EXPECT_LE(static_cast<double>(plant.rollouts()), 1.25 * static_cast<double>(fit) + 1);
    for (int i = 0; i < 30; ++i) plant.window();
    const double given = static_cast<double>(plant.rollouts()) * plant.speed_of(plant.rollouts());
    EXPECT_GE(given, 1 / plant.per_token_s) << "the trainer waits";
    EXPECT_LE(plant.reversals(0), 1);
    EXPECT_LE(plant.changes.size(), 4U);
  }
}

// Engines that decode all the sequences that they may are not faster for being fewer.
TEST(Autoscale, FewerRolloutsAreNoFasterThanTheirSequencesLetThemBe) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const std::int64_t fit = 2 + static_cast<std::int64_t>(rng.below(10));
    Plant plant(seed, {.min = 1, .max = 64, .cooldown = 60s}, 2 * fit);
    plant.engine = {.step_s = 0.01, .sequence_s = 0};
    plant.sequences_max = 16;
    plant.sequences = 16.0 * static_cast<double>(2 * fit);  // as many as 2 · fit of them may have
    plant.per_token_s = 1.2 / (0.8 * static_cast<double>(fit) * plant.speed_of(fit));
    plant.noise = 0.01;
    for (int i = 0; i < 30; ++i) {
      plant.window();
      const double given = static_cast<double>(plant.rollouts()) * plant.speed_of(plant.rollouts());
      EXPECT_GE(given, 1 / plant.per_token_s) << "the trainer waits in window " << i;
    }
    EXPECT_LT(plant.rollouts(), 2 * fit);
    EXPECT_EQ(plant.reversals(0), 0);
  }
}

TEST(Autoscale, WhoTheRoomGoesToIsSaid) {
  AutoscaleInput input = job_of(8);
  input.room = 0;
  EXPECT_THAT(decide(input).reason, testing::HasSubstr("there is room for 0 more"));
  input.room_goes_to = "large-2";
  const AutoscaleDecision decision = decide(input);
  EXPECT_TRUE(decision.at_limit);
  EXPECT_THAT(decision.reason,
              testing::HasSubstr("the room goes to large-2, which waits in the queue"));
}

TEST(Autoscale, AStateWithFiguresThatCannotBeIsNotSound) {
  AutoscaleState state;
  EXPECT_TRUE(is_sound(state));
  state.raised = {.rollouts = 2, .trainer_idle = 0.3, .instance_per_s = 4000, .step_tokens = 1e6};
  EXPECT_TRUE(is_sound(state));
  for (const double figure : {double{NAN}, double{INFINITY}, -1.0}) {
    AutoscaleState damaged = state;
    damaged.raised->consumed_per_s = figure;
    EXPECT_FALSE(is_sound(damaged));
    damaged = state;
    damaged.delivered.step_tokens = figure;
    EXPECT_FALSE(is_sound(damaged));
  }
  for (const double share : {0.0, 5e-324, 1.5, double{NAN}}) {
    AutoscaleState damaged = state;
    damaged.delivered.share = share;
    EXPECT_FALSE(is_sound(damaged));
  }
  for (const std::int64_t rollouts : {std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
    AutoscaleState damaged = state;
    damaged.raised->rollouts = rollouts;
    EXPECT_FALSE(is_sound(damaged));
  }
}

// The engines' rates alone would say that there are enough.
TEST(Autoscale, RolloutsThatDeliverLessThanTheirEnginesAreAddedWhereTheTrainerWaitsForThem) {
  AutoscaleInput input = job_of(13);
  input.rates.trainer_idle_fraction = 0.3;
  input.starved_fraction = 0.28;
  const AutoscaleDecision decision = decide(input);
  EXPECT_EQ(decision.hold, Hold::kChanges) << decision.reason;
  EXPECT_EQ(decision.wanted, 24);  // 13 / (0.7 · 0.8), rounded up
  input.starved_fraction = 0.1;
  EXPECT_EQ(decide(input).hold, Hold::kOtherCause);
  input.starved_fraction = 0.28;
  input.up = 12;
  EXPECT_EQ(decide(input).hold, Hold::kOtherCause) << "the one that is not up explains it";
  input.up = 13;
  input.rates.rollout_deaths = 1;
  EXPECT_EQ(decide(input).hold, Hold::kOtherCause) << "the one that died explains it";
  input.rates.rollout_deaths = 0;
  input.rates.rollout_returns = 1;
  EXPECT_EQ(decide(input).hold, Hold::kOtherCause) << "the one that was away explains it";
  input.rates.rollout_returns = 0;
  EXPECT_EQ(decide(input).hold, Hold::kChanges);
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Plant plant(seed, {.min = 1, .max = 100, .cooldown = 60s},
                1 + static_cast<std::int64_t>(rng.below(20)));
    plant.delivered = 0.4 + 0.6 * rng.unit();
    plant.noise = 0.02;
    const double needed = plant.load() * 0.8 / plant.delivered;  // without headroom
    for (int i = 0; i < 60; ++i) plant.window();
    EXPECT_GE(static_cast<double>(plant.rollouts()), 0.85 * needed);
    EXPECT_LE(static_cast<double>(plant.rollouts()), 1.5 * needed + 1);
    EXPECT_LE(plant.reversals(0), 2) << "an overshoot by noise";
    // Shorter completions need fewer again.
    plant.tokens /= 2;
    plant.speed *= 2;
    for (int i = 0; i < 4; ++i) plant.window();
    EXPECT_LE(static_cast<double>(plant.rollouts()), 0.8 * needed + 1);
  }
}

// What rollouts delivered of long completions says nothing of short ones.
TEST(Autoscale, WhatRolloutsDeliverIsMeasuredAnewWhereLengthsChange) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Plant plant(seed, {.min = 1, .max = 100, .cooldown = 60s}, 10);
    plant.delivered = 0.5;
    plant.noise = 0.02;
    for (int i = 0; i < 30; ++i) plant.window();
    EXPECT_GT(static_cast<double>(plant.rollouts()), 1.3 * plant.load());
    plant.tokens /= 4;
    plant.delivered = 1;
    for (int i = 0; i < 20; ++i) plant.window();
    EXPECT_LE(static_cast<double>(plant.rollouts()), 1.15 * plant.load() + 1);
  }
}

TEST(Autoscale, SixHoursOfAJobWhoseLengthsDoubleAndFallBack) {
  Plant plant(7, {.min = 1, .max = 64, .cooldown = 300s}, 4);
  plant.noise = 0.05;
  std::int64_t while_longer = 0;
  while (plant.now() < Time{} + 6h) {
    const bool longer = plant.now() >= Time{} + 2h && plant.now() < Time{} + 4h;
    plant.tokens = longer ? 3072 : 1536;
    plant.speed = longer ? 2200 : 4000;
    plant.window();
    if (longer) while_longer = plant.rollouts();
  }
  EXPECT_LE(plant.changes.size(), 4U) << "up, up, down, and perhaps an overshoot";
  EXPECT_NEAR(static_cast<double>(while_longer), 23, 3);
  EXPECT_NEAR(static_cast<double>(plant.rollouts()), 13, 2);
}

}  // namespace
}  // namespace tandem::scheduler
