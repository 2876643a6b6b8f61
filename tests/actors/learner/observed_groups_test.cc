// The sample of groups that are computed for metrics alone: that it changes no weight, and what the
// metrics are worth.
#include "actors/learner/observed_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/rng.h"
#include "tests/actors/learner/learner_builder.h"
#include "tests/actors/model/tiny_model.h"
#include "tests/runtime/collective/local_shards.h"
#include "tests/seeds.h"

namespace tandem::learner {
namespace {

using model::testing::scratch_folder;
using testing::make_trainer;
using testing::random_batch;
using testing::trainer_config;

// One in four of the twelve groups has rewards of both kinds.
TrainBatch easy_batch(std::uint64_t seed, StepId step) {
  TrainBatch batch = random_batch(seed, step, {.groups = 12});
  for (std::size_t g = 0; g < batch.groups.size(); ++g)
    if (g % 4 != 1)
      for (TrainTrajectory& trajectory : batch.groups[g].trajectories) trajectory.reward = 1;
  return batch;
}

TrainerConfig observing_config(const std::filesystem::path& folder, double fraction) {
  TrainerConfig config = trainer_config(folder);
  config.observe_fraction = fraction;
  return config;
}

// Every token counts in the loss.
BatchAdvantages advantages_of(const TrainBatch& batch, const std::vector<bool>& learns) {
  BatchAdvantages advantages;
  for (const BatchGroup& group : batch.groups)
    advantages.token_weight.insert(advantages.token_weight.end(), group.trajectories.size(), 1.0f);
  advantages.learns = learns;
  return advantages;
}

std::int64_t chosen_of(const ObservedGroups& observed) {
  return std::ranges::count(observed.chosen, true);
}

TEST(ObservedGroups, AreAShareOfThoseThatDoNotLearn_OG1) {
  for_seeds(50, [](std::uint64_t seed) {
    const TrainBatch batch = easy_batch(seed, StepId{3});
    std::vector<bool> learns;
    Rng rng(seed);
    for (std::size_t g = 0; g < batch.groups.size(); ++g) learns.push_back(rng.below(4) == 0);
    const std::int64_t idle = std::ranges::count(learns, false);
    for (const double fraction : {0.01, 0.1, 0.5, 1.0}) {
      const ObservedGroups one =
          choose_observed(batch, advantages_of(batch, learns), fraction, seed);
      EXPECT_EQ(chosen_of(one),
                static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(idle))));
      EXPECT_EQ(one.chosen,
                choose_observed(batch, advantages_of(batch, learns), fraction, seed).chosen);
      for (std::size_t g = 0; g < learns.size(); ++g) EXPECT_FALSE(learns[g] && one.chosen[g]);
      EXPECT_GE(one.tokens_per_token, 1);
    }
    const ObservedGroups all = choose_observed(batch, advantages_of(batch, learns), 1, seed);
    EXPECT_EQ(all.tokens_per_token, 1);
    EXPECT_EQ(all.fraction, 1);
  });
}

TEST(ObservedGroups, ChangeFromStepToStep) {
  std::vector<bool> seen(12, false);
  const std::vector<bool> learns(12, false);
  for (std::int64_t step = 0; step < 60; ++step) {
    const TrainBatch batch = easy_batch(1, StepId{step});
    const auto chosen = choose_observed(batch, advantages_of(batch, learns), 0.1, 5).chosen;
    for (std::size_t g = 0; g < seen.size(); ++g) seen[g] = seen[g] || chosen[g];
  }
  EXPECT_EQ(std::ranges::count(seen, true), 12);
}

// Observed groups change no weight, whatever the loss, its denominators and the number of ranks.
TEST(ObservedGroups, ChangeNoWeight_OG1) {
  const auto weights_after = [](const AlgorithmConfig& algorithm, double fraction, int ranks,
                                bool shares) {
    const auto folder = scratch_folder("observed");
    TrainerConfig config = observing_config(folder, fraction);
    config.algorithm = algorithm;
    config.batch.mini_batch_groups = 6;
    testing::GangShape shape{.ranks = ranks};
    if (shares) {
      shape.shards = collective::make_local_shards(ranks);
      shape.buckets = {.floats_min = 1000, .floats_max = 2500};
    }
    return testing::run_gang(folder, config, std::move(shape),
                             [](NativeTrainer& trainer) {
                               for (std::uint64_t seed = 1; seed < 5; ++seed)
                                 EXPECT_TRUE(trainer.train(easy_batch(seed, trainer.step())));
                             })
        .front()
        .weights;
  };
  const AlgorithmConfig losses[] = {{},
                                    {.loss_agg_mode = LossAggregation::kSeqMeanTokenMean},
                                    {.adv_estimator = AdvantageEstimator::kDrGrpo},
                                    {.loss_mode = kernels::LossMode::kGspo},
                                    {.bypass_mode = false},
                                    {.use_kl_loss = true, .kl_loss_coef = 0.1}};
  for (const AlgorithmConfig& loss : losses)
    for (const auto& [ranks, shares] :
         {std::pair(1, false), std::pair(2, false), std::pair(3, false), std::pair(2, true)})
      EXPECT_EQ(weights_after(loss, 0.1, ranks, shares), weights_after(loss, 1, ranks, shares))
          << &loss - losses << ", ranks " << ranks;
}

// The mean over many samples is the figure of all tokens.
TEST(ObservedGroups, MeansAreEstimatesForAllTokens) {
  const auto folder = scratch_folder("estimates");
  TrainerConfig config = observing_config(folder, 1);
  config.optimizer.lr = 0;
  const auto whole = make_trainer(folder, config)->train(easy_batch(9, StepId{0}));
  ASSERT_TRUE(whole);
  const messages::StepReport& all = whole->report;
  EXPECT_EQ(all.observed_fraction, 1);
  config.observe_fraction = 0.1;
  const auto trainer = make_trainer(folder, config);
  double entropy = 0, difference = 0;
  constexpr int kSteps = 300;
  // One batch at every step, so that the samples alone differ.
  TrainBatch batch = easy_batch(9, StepId{0});
  for (int step = 0; step < kSteps; ++step) {
    batch.step = trainer->step();
    const auto trained = trainer->train(batch);
    ASSERT_TRUE(trained);
    EXPECT_LT(trained->report.observed_fraction, 0.6);
    EXPECT_LT(trained->report.tokens_at_staleness_0, trained->report.tokens_trained);
    EXPECT_EQ(trained->report.tokens_trained, all.tokens_trained);
    EXPECT_EQ(trained->report.loss, all.loss) << "it is of the groups that learn";
    entropy += *trained->report.entropy / kSteps;
    difference += trained->report.logprob_diff_mean / kSteps;
  }
  // One group of nine is observed at a time, and their means are some per cent apart.
  EXPECT_NEAR(entropy, *all.entropy, 0.005 * *all.entropy);
  EXPECT_NEAR(difference, all.logprob_diff_mean, 0.02 * all.logprob_diff_mean);
}

// Of five groups that do not learn one is masked whole and one in part: the others stand for what
// counts alone.
TEST(ObservedGroups, StandForTheTokensThatCountInTheLoss_AD3) {
  const TrainBatch batch = easy_batch(1, StepId{3});
  BatchAdvantages advantages = advantages_of(batch, std::vector<bool>(batch.groups.size(), true));
  const std::size_t n = batch.groups[0].trajectories.size();
  double idle = 0;
  for (std::size_t g = 0; g < 5; ++g) {
    advantages.learns[g] = false;
    for (std::size_t i = 0; i < n; ++i) {
      const bool masked = g == 0 || (g == 1 && i == 0);
      if (masked) advantages.token_weight[g * n + i] = 0;
      idle += masked ? 0 : static_cast<double>(batch.groups[g].trajectories[i].tokens.size());
    }
  }
  for (const double fraction : {0.01, 0.5, 1.0}) {
    const ObservedGroups observed = choose_observed(batch, advantages, fraction, 5);
    EXPECT_FALSE(observed.chosen[0]);
    EXPECT_EQ(chosen_of(observed), std::ceil(4 * fraction));
    double chosen = 0;
    for (std::size_t g = 1; g < 5; ++g)
      for (std::size_t i = 0; observed.chosen[g] && i < n; ++i)
        if (advantages.token_weight[g * n + i] != 0)
          chosen += static_cast<double>(batch.groups[g].trajectories[i].tokens.size());
    EXPECT_DOUBLE_EQ(observed.tokens_per_token * chosen, idle);
  }
}

}  // namespace
}  // namespace tandem::learner
