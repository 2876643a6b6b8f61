#include "actors/learner/advantage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "actors/learner/lr_schedule.h"

namespace tandem::actors {
namespace {

struct Sample {
  float reward;
  int tokens;
};

TrainBatch batch_of(const std::vector<std::vector<Sample>>& groups) {
  TrainBatch batch;
  for (const auto& samples : groups) {
    BatchGroup group{GroupId{batch.groups.size()}, {1}, {}};
    for (const Sample& sample : samples) {
      const std::size_t tokens = static_cast<std::size_t>(sample.tokens);
      group.trajectories.push_back({std::vector<std::int32_t>(tokens, 2),
                                    std::vector<float>(tokens, -1),
                                    {},
                                    sample.reward});
    }
    batch.groups.push_back(std::move(group));
  }
  return batch;
}

void expect_near(const std::vector<float>& values, const std::vector<double>& wanted) {
  ASSERT_EQ(values.size(), wanted.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], wanted[i], 1e-6 * (1 + std::abs(wanted[i]))) << "at " << i;
}

const std::vector<std::vector<Sample>> kTwoGroups = {{{1, 2}, {0, 3}, {0, 1}, {0, 2}},
                                                     {{1, 4}, {1, 4}, {1, 4}, {1, 4}}};

TEST(Advantage, GrpoDividesByTheGroupsDeviationAndLeavesEqualRewardsOut_AD1) {
  const BatchAdvantages a = compute_advantages({}, batch_of(kTwoGroups));
  const double deviation = 0.5;  // of 1, 0, 0, 0 with n - 1
  expect_near(a.advantage, {0.75 / (deviation + 1e-4), -0.25 / (deviation + 1e-4),
                            -0.25 / (deviation + 1e-4), -0.25 / (deviation + 1e-4), 0, 0, 0, 0});
  EXPECT_EQ(a.live, (std::vector<bool>{true, false}));
  EXPECT_EQ(a.zero_variance, 1u);
  EXPECT_EQ(a.tokens, 24u);
  const double w = 1.0 / 8;  // the tokens of the live group alone
  expect_near(a.token_weight, {w, w, w, w, 0, 0, 0, 0});
}

TEST(Advantage, WithoutStdItIsTheDifferenceFromTheMean) {
  const BatchAdvantages a =
      compute_advantages({.norm_adv_by_std_in_grpo = false}, batch_of(kTwoGroups));
  expect_near(a.advantage, {0.75, -0.25, -0.25, -0.25, 0, 0, 0, 0});
}

TEST(Advantage, DrGrpoHasAConstantDenominator) {
  const BatchAdvantages a = compute_advantages(
      {.estimator = AdvantageEstimator::kDrGrpo, .response_length_max = 10}, batch_of(kTwoGroups));
  expect_near(a.advantage, {0.75, -0.25, -0.25, -0.25, 0, 0, 0, 0});
  const double w = 1.0 / (8 * 10);
  expect_near(a.token_weight, {w, w, w, w, 0, 0, 0, 0});
}

TEST(Advantage, RlooComparesWithTheOthersMean) {
  const BatchAdvantages a = compute_advantages({.estimator = AdvantageEstimator::kRloo},
                                               batch_of({{{3, 1}, {0, 1}, {0, 1}}}));
  expect_near(a.advantage, {3, -1.5, -1.5});
}

TEST(Advantage, ReinforcePlusPlusWhitensOverTheBatchsTokens) {
  const BatchAdvantages a = compute_advantages(
      {.estimator = AdvantageEstimator::kReinforcePlusPlus}, batch_of({{{1, 1}}, {{0, 3}}}));
  // Tokens 1, 0, 0, 0: mean 1/4, variance 3/4 * 1/3 = 1/4.
  const double deviation = std::sqrt(0.25 + 1e-8);
  expect_near(a.advantage, {0.75 / deviation, -0.25 / deviation});
  EXPECT_EQ(a.live, (std::vector<bool>{true, true}))
      << "a single trajectory is compared with others";
  expect_near(a.token_weight, {0.25, 0.25});
}

TEST(Advantage, AggregationsWeighAsVerlDoes) {
  const TrainBatch batch = batch_of({{{1, 2}, {0, 4}}});
  const auto weights = [&](LossAggregation mode) {
    return compute_advantages({.loss_aggregation = mode, .response_length_max = 8}, batch)
        .token_weight;
  };
  expect_near(weights(LossAggregation::kTokenMean), {1.0 / 6, 1.0 / 6});
  expect_near(weights(LossAggregation::kSeqMeanTokenSum), {0.5, 0.5});
  expect_near(weights(LossAggregation::kSeqMeanTokenMean), {0.25, 0.125});
  expect_near(weights(LossAggregation::kSeqMeanTokenSumNorm), {1.0 / 16, 1.0 / 16});
}

TEST(Advantage, GspoAveragesWithinSequences) {
  const BatchAdvantages a =
      compute_advantages({.loss_mode = kernels::LossMode::kGspo}, batch_of({{{1, 2}, {0, 4}}}));
  expect_near(a.token_weight, {0.25, 0.125});
}

TEST(Advantage, OverlongAnswersLoseReward) {
  const AlgorithmConfig config{.overlong_buffer = {.length = 4, .penalty_factor = 2},
                               .response_length_max = 10};
  EXPECT_EQ(overlong_penalty(config, 6), 0);
  EXPECT_EQ(overlong_penalty(config, 7), -0.5);
  EXPECT_EQ(overlong_penalty(config, 10), -2);
  EXPECT_EQ(overlong_penalty({.response_length_max = 10}, 10), 0);
  // Equal rewards, but one answer is too long: the group has something to say after all.
  const BatchAdvantages a = compute_advantages(config, batch_of({{{1, 5}, {1, 8}}}));
  EXPECT_TRUE(a.live[0]);
  EXPECT_GT(a.advantage[0], 0);
}

TEST(LearningRate, WarmsUpThenFallsToItsFloor) {
  OptimizerConfig config{.lr = 1, .warmup_steps = 4, .min_lr_ratio = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 24), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3, 24), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 14, 24), 0.6);
  EXPECT_DOUBLE_EQ(learning_rate(config, 24, 24), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(config, 100, 24), 0.2);
  config.schedule = LrSchedule::kCosine;
  EXPECT_NEAR(learning_rate(config, 9, 24), 0.2 + 0.8 * 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  config.schedule = LrSchedule::kConstant;
  EXPECT_DOUBLE_EQ(learning_rate(config, 100, 24), 1.0);
}

}  // namespace
}  // namespace tandem::actors
