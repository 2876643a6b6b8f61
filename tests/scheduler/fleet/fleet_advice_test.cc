#include "scheduler/fleet/fleet_advice.h"

#include <gtest/gtest.h>

#include "tests/scheduler/fleet/random_fleet.h"

namespace tandem::scheduler {
namespace {

// A fleet of which nothing can be got back: 4 rollouts of 1,000 tokens per second, and a trainer
// that takes 4,000.
RecoveryFacts sound() {
  RecoveryFacts facts{.rates = {.steps = 10,
                                .seconds = 100,
                                .rollouts = {},
                                .step_seconds = 1,
                                .step_tokens = 4000,
                                .completions_per_step = 8,
                                .install_seconds = 0.01,
                                .prefix_hit_ratio = {},
                                .trainer_idle_fraction = 0.2},
                      .completions_per_prompt = 8,
                      .staleness_max = 2,
                      .staleness_mean = 1.9};
  for (const char* const actor : {"rollout/0", "rollout/1", "rollout/2", "rollout/3"})
    facts.rates.rollouts.push_back(
        {.actor = actor, .tokens_per_s = 1000, .busy_fraction = 1, .install_fraction = 0.01});
  return facts;
}

Advice only(const RecoveryFacts& facts) {
  const auto all = recoveries(facts);
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? Advice{} : all.front();
}

TEST(FleetAdvice, ASoundFleetHasNone) { EXPECT_TRUE(recoveries(sound()).empty()); }

TEST(FleetAdvice, NamesDeaths) {
  RecoveryFacts facts = sound();
  facts.rates.rollout_deaths = 3;
  const Advice advice = only(facts);
  EXPECT_EQ(advice.kind, AdviceKind::kDeaths);
  EXPECT_EQ(advice.seen, 3);
}

TEST(FleetAdvice, NamesTheStraggler) {
  RecoveryFacts facts = sound();
  facts.rates.rollouts[2].tokens_per_s = 200;  // 4,000 - 800 in all, so that the mean is 800
  const Advice advice = only(facts);
  EXPECT_EQ(advice.kind, AdviceKind::kSpread);
  EXPECT_NEAR(advice.seen, 800.0 / 800, 1e-9);
  EXPECT_EQ(advice.actor, "rollout/2");
  EXPECT_LT(*advice.matched_after, matched_rollouts(model_of(facts.rates, true)));
  facts.rates.rollouts[2].tokens_per_s = 850;
  EXPECT_TRUE(recoveries(facts).empty()) << "within a fifth";
}

// Eight completions of a prompt promise that seven of eight prompt tokens need no computation.
TEST(FleetAdvice, PrefixHitsBelowThePromise) {
  RecoveryFacts facts = sound();
  facts.group_prompt_shared = false;
  facts.rates.prefix_hit_ratio = 0.5;
  const Advice advice = only(facts);
  EXPECT_EQ(advice.kind, AdviceKind::kPrefixHits);
  EXPECT_EQ(advice.seen, 0.5);
  EXPECT_NEAR(advice.threshold, 0.775, 1e-9);
  facts.rates.prefix_hit_ratio = 0.86;
  EXPECT_TRUE(recoveries(facts).empty());
  facts.rates.prefix_hit_ratio = 0.1;
  facts.completions_per_prompt = 1;
  EXPECT_TRUE(recoveries(facts).empty()) << "one completion promises nothing";
}

// Tandem's engine looks a prompt up once for all of its completions: few hits are no waste then.
TEST(FleetAdvice, AnEngineThatForksKeepsThePromiseByItself) {
  RecoveryFacts facts = sound();
  facts.rates.prefix_hit_ratio = 0;
  EXPECT_TRUE(recoveries(facts).empty());
  EXPECT_NEAR(prompt_share_saved(facts, 0), 7.0 / 8, 1e-9);
  EXPECT_NEAR(prompt_share_saved(facts, 0.5), 15.0 / 16, 1e-9);
}

TEST(FleetAdvice, LongInstallPauses) {
  RecoveryFacts facts = sound();
  for (RolloutRate& rollout : facts.rates.rollouts) rollout.install_fraction = 0.3;
  const Advice advice = only(facts);
  EXPECT_EQ(advice.kind, AdviceKind::kInstallPause);
  EXPECT_NEAR(advice.seen, 0.3, 1e-9);
  EXPECT_EQ(matched_rollouts(model_of(facts.rates, true)), 8);
  EXPECT_EQ(advice.matched_after, 5);
}

TEST(FleetAdvice, StalenessThatNobodyUses) {
  RecoveryFacts facts = sound();
  facts.staleness_max = 4;
  facts.staleness_mean = 1;
  EXPECT_EQ(only(facts).kind, AdviceKind::kStalenessSlack);
  EXPECT_EQ(only(facts).seen, 0.25);
  facts.staleness_max = 0;
  facts.staleness_mean = 0;
  EXPECT_EQ(only(facts).kind, AdviceKind::kStalenessSlack);
  facts.rates.trainer_idle_fraction = 0.01;
  EXPECT_TRUE(recoveries(facts).empty()) << "the trainer does not wait";
}

TEST(FleetAdvice, TokensGeneratedInVain) {
  RecoveryFacts facts = sound();
  facts.rates.generated_per_trained = 2;
  const Advice advice = only(facts);
  EXPECT_EQ(advice.kind, AdviceKind::kWaste);
  EXPECT_EQ(advice.seen, 2);
  EXPECT_EQ(advice.matched_after, 6);
}

// FA-1 and FA-2, over random rates.
TEST(FleetAdvice, ComesInOrderAndNeverAsksForMoreRollouts) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    RecoveryFacts facts = sound();
    const FleetModel model = random_model(rng);
    facts.rates.rollouts.clear();
    for (const double rate : model.rollouts_per_s)
      facts.rates.rollouts.push_back({.actor = "rollout/0",
                                      .tokens_per_s = rate,
                                      .busy_fraction = 1,
                                      .install_fraction = 0.5 * rng.unit()});
    facts.rates.step_seconds = model.step_seconds;
    facts.rates.step_tokens = model.step_tokens;
    facts.rates.generated_per_trained = model.generated_per_trained;
    facts.rates.rollout_deaths = static_cast<std::int64_t>(rng.below(2));
    facts.rates.trainer_idle_fraction = rng.unit();
    facts.rates.prefix_hit_ratio = rng.unit();
    facts.group_prompt_shared = rng.below(2) == 0;
    facts.staleness_max = static_cast<std::int64_t>(rng.below(5));
    facts.staleness_mean = rng.unit() * static_cast<double>(facts.staleness_max);
    const std::int64_t matched =
        matched_rollouts(model_of(facts.rates, facts.staleness_max > 0), facts.headroom);
    const auto all = recoveries(facts);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i > 0) {
        EXPECT_LT(all[i - 1].kind, all[i].kind);
      }
      EXPECT_LE(all[i].matched_after.value_or(1), matched);
    }
  }
}

}  // namespace
}  // namespace tandem::scheduler
