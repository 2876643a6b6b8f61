// Advantages, the weights of tokens and the learning rate against values that are worked out by
// hand from the formulas, for each estimator and each aggregation of losses.
#include "actors/learner/advantage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "actors/learner/lr_schedule.h"

namespace tandem::learner {
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

// Computes advantages with the default shape.
BatchAdvantages compute_advantages(const AlgorithmConfig& config, const TrainBatch& batch,
                                   std::span<const float> penalties = {}) {
  return learner::compute_advantages(config, {}, batch, penalties);
}

TEST(Advantage, GrpoDividesByTheGroupsDeviationAndLeavesEqualRewardsOut_AD1) {
  const BatchAdvantages a = compute_advantages({}, batch_of(kTwoGroups));
  const double deviation = 0.5;  // the deviation of 1, 0, 0, 0 with n - 1
  expect_near(a.advantage, {0.75 / (deviation + 1e-4), -0.25 / (deviation + 1e-4),
                            -0.25 / (deviation + 1e-4), -0.25 / (deviation + 1e-4), 0, 0, 0, 0});
  EXPECT_EQ(a.learns, (std::vector<bool>{true, false}));
  EXPECT_EQ(a.zero_variance, 1u);
  EXPECT_EQ(a.tokens, 24u);
  const double w = 1.0 / 24;  // all tokens, as KL and entropy act on them (AD-2)
  expect_near(a.token_weight, std::vector<double>(8, w));
}

TEST(Advantage, WithoutStdItIsTheDifferenceFromTheMean) {
  const BatchAdvantages a =
      compute_advantages({.norm_adv_by_std_in_grpo = false}, batch_of(kTwoGroups));
  expect_near(a.advantage, {0.75, -0.25, -0.25, -0.25, 0, 0, 0, 0});
}

TEST(Advantage, DrGrpoHasAConstantDenominator) {
  const BatchAdvantages a = compute_advantages({.adv_estimator = AdvantageEstimator::kDrGrpo},
                                               {.response_length_max = 10}, batch_of(kTwoGroups));
  expect_near(a.advantage, {0.75, -0.25, -0.25, -0.25, 0, 0, 0, 0});
  expect_near(a.token_weight, std::vector<double>(8, 1.0 / (8 * 10)));
}

TEST(Advantage, RlooComparesWithTheOthersMean) {
  const BatchAdvantages a = compute_advantages({.adv_estimator = AdvantageEstimator::kRloo},
                                               batch_of({{{3, 1}, {0, 1}, {0, 1}}}));
  expect_near(a.advantage, {3, -1.5, -1.5});
}

TEST(Advantage, ReinforcePlusPlusWhitensOverTheBatchsTokens) {
  const BatchAdvantages a = compute_advantages(
      {.adv_estimator = AdvantageEstimator::kReinforcePlusPlus}, batch_of({{{1, 1}}, {{0, 3}}}));
  // Tokens 1, 0, 0, 0: mean 1/4, variance 3/4 * 1/3 = 1/4.
  const double deviation = std::sqrt(0.25 + 1e-8);
  expect_near(a.advantage, {0.75 / deviation, -0.25 / deviation});
  EXPECT_EQ(a.learns, (std::vector<bool>{true, true}))
      << "a single trajectory is compared with others";
  expect_near(a.token_weight, {0.25, 0.25});
}

// A completion that is in no loss is in no mean of the batch either.
TEST(Advantage, WhiteningLeavesMaskedTokensOut_AD3) {
  TrainBatch batch = batch_of({{{1, 1}}, {{0, 3}}, {{50, 9}}});
  batch.groups[2].trajectories[0].truncated = true;
  const BatchAdvantages a = compute_advantages(
      {.adv_estimator = AdvantageEstimator::kReinforcePlusPlus, .mask_truncated_completions = true},
      batch);
  const double deviation = std::sqrt(0.25 + 1e-8);
  EXPECT_NEAR(a.advantage[0], 0.75 / deviation, 1e-6);
  EXPECT_NEAR(a.advantage[1], -0.25 / deviation, 1e-6);
  EXPECT_EQ(a.token_weight[2], 0);
}

TEST(Advantage, AggregationsWeighAsVerlDoes) {
  const TrainBatch batch = batch_of({{{1, 2}, {0, 4}}});
  const auto weights = [&](LossAggregation mode) {
    return compute_advantages({.loss_agg_mode = mode}, {.response_length_max = 8}, batch)
        .token_weight;
  };
  expect_near(weights(LossAggregation::kTokenMean), {1.0 / 6, 1.0 / 6});
  expect_near(weights(LossAggregation::kSeqMeanTokenSum), {0.5, 0.5});
  expect_near(weights(LossAggregation::kSeqMeanTokenMean), {0.25, 0.125});
  expect_near(weights(LossAggregation::kSeqMeanTokenSumNorm), {1.0 / 16, 1.0 / 16});
}

// verl's agg_loss (core_algos.py) over the batch's losses [sequence][token]; its divisor of
// seq-mean-token-sum-norm is the response length, of which the mean over sequences is taken (as in
// TRL and the paper of Dr. GRPO).
double agg_loss(LossAggregation mode, const std::vector<std::vector<double>>& losses,
                double response_max) {
  double tokens = 0, token_sum = 0, seq_sums = 0, seq_means = 0;
  for (const std::vector<double>& sequence : losses) {
    double sum = 0;
    for (const double l : sequence) sum += l;
    tokens += static_cast<double>(sequence.size());
    token_sum += sum;
    seq_sums += sum;
    seq_means += sum / static_cast<double>(sequence.size());
  }
  const auto sequences = static_cast<double>(losses.size());
  switch (mode) {
    case LossAggregation::kTokenMean:
      return token_sum / tokens;
    case LossAggregation::kSeqMeanTokenSum:
      return seq_sums / sequences;
    case LossAggregation::kSeqMeanTokenMean:
      return seq_means / sequences;
    case LossAggregation::kSeqMeanTokenSumNorm:
      return seq_sums / sequences / response_max;
  }
  return 0;
}

// One group of 64 differs in its rewards: the others count in every denominator all the same.
TEST(Advantage, DenominatorsCountGroupsWithoutVarianceAsVerlDoes_AD2) {
  std::vector<std::vector<Sample>> groups(64, {{1, 3}, {1, 5}});
  groups[17] = {{1, 2}, {0, 7}};
  const TrainBatch batch = batch_of(groups);
  for (const auto mode :
       {LossAggregation::kTokenMean, LossAggregation::kSeqMeanTokenSum,
        LossAggregation::kSeqMeanTokenMean, LossAggregation::kSeqMeanTokenSumNorm}) {
    const BatchAdvantages a =
        compute_advantages({.loss_agg_mode = mode}, {.response_length_max = 8}, batch);
    std::vector<std::vector<double>> losses;
    double ours = 0;
    for (const BatchGroup& group : batch.groups)
      for (const TrainTrajectory& t : group.trajectories) {
        const std::size_t i = losses.size();
        losses.emplace_back(t.tokens.size(), -static_cast<double>(a.advantage[i]) + 0.01);  // a KL
        for (const double l : losses.back()) ours += static_cast<double>(a.token_weight[i]) * l;
      }
    const double wanted = agg_loss(mode, losses, 8);
    EXPECT_NEAR(ours, wanted, 1e-6 * std::abs(wanted)) << static_cast<int>(mode);
  }
}

TEST(Advantage, AGroupWithoutVarianceLearnsWhereTheLossHasTermsOnEveryToken) {
  const auto learns = [](const AlgorithmConfig& config) {
    return compute_advantages(config, batch_of(kTwoGroups)).learns;
  };
  const std::vector<bool> some{true, false}, all{true, true};
  EXPECT_EQ(learns({}), some);
  EXPECT_EQ(learns({.entropy_coeff = 0.01}), all);
  EXPECT_EQ(learns({.use_kl_loss = true, .kl_loss_coef = 0.1}), all);
  EXPECT_EQ(learns({.use_kl_loss = true}), some) << "its coefficient is 0";
}

TEST(Advantage, AMiniBatchTeachesWhereAnAdvantageIsNotZero) {
  TrainBatch batch = batch_of({{{1, 1}, {0, 1}}, {{1, 1}, {1, 1}}});
  const auto teaches = [&](const AlgorithmConfig& config) {
    return learner::compute_advantages(config, {.mini_batch_groups = 1}, batch).teaches;
  };
  const std::vector<bool> first{true, false}, both{true, true}, none{false, false};
  EXPECT_EQ(teaches({}), first);
  EXPECT_EQ(teaches({.entropy_coeff = 0.01}), both);
  EXPECT_EQ(teaches({.use_kl_loss = true}), first) << "its coefficient is 0";
  EXPECT_EQ(compute_advantages({}, batch).teaches, std::vector<bool>{true});
  for (TrainTrajectory& t : batch.groups[0].trajectories) t.truncated = true;
  EXPECT_EQ(teaches({.mask_truncated_completions = true}), none);
}

TEST(Advantage, GspoAveragesWithinSequences) {
  const BatchAdvantages a =
      compute_advantages({.loss_mode = kernels::LossMode::kGspo}, batch_of({{{1, 2}, {0, 4}}}));
  expect_near(a.token_weight, {0.25, 0.125});
}

TEST(Advantage, OverlongAnswersLoseReward) {
  const OverlongBuffer buffer{.len = 4, .penalty_factor = 2};
  EXPECT_EQ(overlong_penalty(buffer, 10, 6), 0);
  EXPECT_EQ(overlong_penalty(buffer, 10, 7), -0.5);
  EXPECT_EQ(overlong_penalty(buffer, 10, 10), -2);
  EXPECT_EQ(overlong_penalty({}, 10, 10), 0);
  // Equal rewards, but one answer is too long: the group has something to say after all.
  const BatchAdvantages a = compute_advantages(
      {.overlong_buffer = buffer}, {.response_length_max = 10}, batch_of({{{1, 5}, {1, 8}}}));
  EXPECT_TRUE(a.learns[0]);
  EXPECT_GT(a.advantage[0], 0);
}

TEST(LearningRate, WarmsUpThenFallsToItsFloor) {
  OptimizerConfig config{.lr = 1, .lr_warmup_steps = 4, .min_lr_ratio = 0.2};
  EXPECT_DOUBLE_EQ(learning_rate(config, 0, 25), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3, 25), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 4, 25), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 14, 25), 0.6);
  EXPECT_DOUBLE_EQ(learning_rate(config, 24, 25), 0.2) << "the last step's";
  EXPECT_DOUBLE_EQ(learning_rate(config, 100, 25), 0.2);
  config.lr_scheduler_type = LrSchedule::kCosine;
  EXPECT_DOUBLE_EQ(learning_rate(config, 24, 25), 0.2);
  EXPECT_NEAR(learning_rate(config, 9, 25), 0.2 + 0.8 * 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  config.lr_scheduler_type = LrSchedule::kConstant;
  EXPECT_DOUBLE_EQ(learning_rate(config, 100, 24), 1.0);
}

TEST(Advantage, WeightsAreOfTheMiniBatch_AD2) {
  const TrainBatch batch = batch_of({{{1, 2}, {0, 3}}, {{1, 4}, {0, 1}}});
  const BatchAdvantages a = compute_advantages({}, {.mini_batch_groups = 1}, batch);
  expect_near(a.token_weight, {0.2, 0.2, 0.2, 0.2});
  const BatchAdvantages b = compute_advantages(
      {.loss_agg_mode = LossAggregation::kSeqMeanTokenMean}, {.mini_batch_groups = 1}, batch);
  expect_near(b.token_weight, {1.0 / 4, 1.0 / 6, 1.0 / 8, 1.0 / 2});
  EXPECT_EQ(a.advantage, compute_advantages({}, batch).advantage) << "they are of the batch";
}

TEST(Advantage, TruncatedCompletionsLeaveTheDenominators_AD3) {
  TrainBatch batch = batch_of({{{1, 2}, {0, 3}}, {{1, 4}, {0, 1}}, {{1, 1}, {0, 1}}});
  batch.groups[0].trajectories[1].truncated = true;
  for (TrainTrajectory& t : batch.groups[2].trajectories) t.truncated = true;
  const BatchAdvantages a = compute_advantages({.mask_truncated_completions = true}, batch);
  expect_near(a.token_weight, {1.0 / 7, 0, 1.0 / 7, 1.0 / 7, 0, 0});
  EXPECT_EQ(a.learns, (std::vector<bool>{true, true, false}));
  EXPECT_EQ(a.advantage, compute_advantages({}, batch).advantage);
  EXPECT_EQ(a.tokens, 12u);
  for (BatchGroup& group : batch.groups)
    for (TrainTrajectory& t : group.trajectories) t.truncated = true;
  for (const float w : compute_advantages({.mask_truncated_completions = true}, batch).token_weight)
    EXPECT_EQ(w, 0);
}

// The task's rewards are divided by their deviation, KL is not: it would be noise of size 1 where
// all rewards are the same.
TEST(Advantage, KlIsNotDividedByTheDeviationOfAGroup_AD1) {
  const TrainBatch batch = batch_of({{{0, 1}, {0, 1}, {0, 1}}, {{1, 1}, {0, 1}, {0, 1}}});
  const std::vector<float> penalties{1e-4f, 2e-4f, 3e-4f, 1e-4f, 2e-4f, 3e-4f};
  const AlgorithmConfig config{.use_kl_in_reward = true};
  const BatchAdvantages a = compute_advantages(config, batch, penalties);
  const BatchAdvantages without = compute_advantages(config, batch);
  for (std::size_t i = 0; i < a.advantage.size(); ++i)
    EXPECT_NEAR(a.advantage[i] - without.advantage[i], 1e-4 * (1 - static_cast<double>(i % 3)),
                1e-6)
        << i;
  EXPECT_EQ(a.zero_variance, 1u);
  EXPECT_EQ(a.learns, (std::vector<bool>{true, true}));
  // The baseline of rloo is the others' mean, of KL too.
  AlgorithmConfig rloo = config;
  rloo.adv_estimator = AdvantageEstimator::kRloo;
  EXPECT_NEAR(compute_advantages(rloo, batch, penalties).advantage[0], 1.5e-4, 1e-8);
}

TEST(Advantage, KlIsTakenFromTheReward) {
  const TrainBatch batch = batch_of({{{1, 2}, {0, 1}}, {{1, 1}, {1, 2}}});
  const std::vector<float> penalties{0.25f, 0.25f, 0, 0, 0.5f, 0.5f};
  const BatchAdvantages a = compute_advantages(
      {.norm_adv_by_std_in_grpo = false, .use_kl_in_reward = true}, batch, penalties);
  expect_near(a.advantage, {0.25, -0.25, 0.5, -0.5});  // for the rewards 0.5, 0 and 1, 0
  EXPECT_EQ(a.zero_variance, 1u) << "counted before KL";
  EXPECT_EQ(a.learns, (std::vector<bool>{true, true}));
  EXPECT_TRUE(a.of_token.empty());

  // Returns 0.5, 0.75 | 0 | 1 | 0, 0.5: each token loses the sum from itself to the end.
  const std::vector<double> returns{0.5, 0.75, 0, 1, 0, 0.5};
  double mean = 0, squares = 0;
  for (const double r : returns) mean += r / 6;
  for (const double r : returns) squares += (r - mean) * (r - mean) / 5;
  std::vector<double> wanted;
  for (const double r : returns) wanted.push_back((r - mean) / std::sqrt(squares + 1e-8));
  const BatchAdvantages b = compute_advantages(
      {.adv_estimator = AdvantageEstimator::kReinforcePlusPlus}, batch, penalties);
  expect_near(b.of_token, wanted);
  expect_near(b.advantage,
              {(wanted[0] + wanted[1]) / 2, wanted[2], wanted[3], (wanted[4] + wanted[5]) / 2});
}

// Means and deviations in the plainest words, as an oracle of the forms below.
double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}
double deviation(const std::vector<double>& values) {
  double squares = 0;
  for (const double v : values) squares += (v - mean(values)) * (v - mean(values));
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

const std::vector<std::vector<Sample>> kThreeGroups = {
    {{1, 2}, {0, 3}, {0, 1}}, {{1, 4}, {1, 4}, {1, 4}}, {{3, 5}, {1, 1}, {-1, 2}}};
const std::vector<std::vector<double>> kTheirRewards = {{1, 0, 0}, {1, 1, 1}, {3, 1, -1}};

// TRL's GRPOTrainer: rewards - mean_grouped_rewards, by (std_rewards + 1e-4), where std_rewards is
// the group's or that of all rewards.
TEST(Advantage, RewardsAreScaledByTheGroupTheBatchOrNothingAsInTrl) {
  const TrainBatch batch = batch_of(kThreeGroups);
  std::vector<double> all, none, by_group, by_batch, rloo_group;
  for (const auto& rewards : kTheirRewards) all.insert(all.end(), rewards.begin(), rewards.end());
  for (const auto& rewards : kTheirRewards)
    for (const double r : rewards) {
      none.push_back(r - mean(rewards));
      by_group.push_back(none.back() / (deviation(rewards) + 1e-4));
      by_batch.push_back(none.back() / (deviation(all) + 1e-4));
      rloo_group.push_back(1.5 * by_group.back());
    }
  const auto advantages = [&](const AlgorithmConfig& config) {
    return compute_advantages(config, batch).advantage;
  };
  using enum ScaleRewards;
  expect_near(advantages({.scale_rewards = kNone}), none);
  expect_near(advantages({.scale_rewards = kGroup}), by_group);
  expect_near(advantages({.scale_rewards = kBatch}), by_batch);
  EXPECT_EQ(advantages({.scale_rewards = kGroup}), advantages({})) << "the default, to the bit";
  EXPECT_EQ(advantages({.norm_adv_by_std_in_grpo = false, .scale_rewards = kBatch}),
            advantages({.scale_rewards = kBatch}));
  AlgorithmConfig rloo{.adv_estimator = AdvantageEstimator::kRloo, .scale_rewards = kGroup};
  expect_near(advantages(rloo), rloo_group);
  const BatchAdvantages a = compute_advantages({.scale_rewards = kBatch}, batch);
  EXPECT_EQ(a.learns, (std::vector<bool>{true, false, true})) << "AD-1";
}

// verl's compute_reinforce_plus_plus_baseline_outcome_advantage: rewards less their group's mean,
// on every token, whitened by masked_whiten.
TEST(Advantage, NormalizedOverTheBatchItIsReinforcePlusPlusBaseline_AD1) {
  TrainBatch batch = batch_of(kThreeGroups);
  batch.groups[2].trajectories[0].truncated = true;
  const AlgorithmConfig config{.norm_adv_by_std_in_grpo = false,
                               .advantage_batch_normalize = true,
                               .mask_truncated_completions = true};
  std::vector<double> tokens, raw;
  for (std::size_t g = 0; g < 3; ++g)
    for (std::size_t i = 0; i < 3; ++i) {
      raw.push_back(kTheirRewards[g][i] - mean(kTheirRewards[g]));
      if (!batch.groups[g].trajectories[i].truncated)
        tokens.insert(tokens.end(), batch.groups[g].trajectories[i].tokens.size(), raw.back());
    }
  std::vector<double> wanted;
  const double variance = deviation(tokens) * deviation(tokens);
  for (const double r : raw) wanted.push_back((r - mean(tokens)) / std::sqrt(variance + 1e-8));
  const BatchAdvantages a = compute_advantages(config, batch);
  expect_near(a.advantage, wanted);
  EXPECT_EQ(a.learns, (std::vector<bool>{true, true, true})) << "the batch's mean is not 0";
  EXPECT_EQ(a.zero_variance, 1u);
}

TEST(Advantage, IsCutToTheClipLastOfAll) {
  const TrainBatch batch = batch_of(kThreeGroups);
  AlgorithmConfig config{.norm_adv_by_std_in_grpo = false, .advantage_clip = 0.5};
  expect_near(compute_advantages(config, batch).advantage,
              {0.5, -1.0 / 3, -1.0 / 3, 0, 0, 0, 0.5, 0, -0.5});
  config = {.adv_estimator = AdvantageEstimator::kReinforcePlusPlus, .advantage_clip = 0.1};
  const std::vector<float> penalties(26, 0.01f);
  for (const float advantage : compute_advantages(config, batch, penalties).of_token)
    EXPECT_LE(std::abs(advantage), 0.1f);
}

// verl: int(lr_warmup_steps_ratio * total_training_steps).
TEST(LearningRate, WarmUpMayBeAShareOfAllSteps) {
  OptimizerConfig share{.lr = 1, .lr_warmup_steps = 0, .lr_warmup_steps_ratio = 0.1};
  const OptimizerConfig steps{.lr = 1, .lr_warmup_steps = 7};
  for (std::int64_t step = 0; step < 79; ++step)
    EXPECT_EQ(learning_rate(share, step, 79), learning_rate(steps, step, 79)) << step;
  EXPECT_EQ(warmup_steps(share, 9), 0);
  EXPECT_EQ(learning_rate(share, 0, 9), 1);
  share.lr_warmup_steps_ratio = 1;
  EXPECT_EQ(learning_rate(share, 4, 5), 1);
}

}  // namespace
}  // namespace tandem::learner
