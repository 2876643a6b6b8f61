// Several optimizer steps from one batch: the groups of each, the values that are computed once
// before the first, and that neither ranks nor checkpoints nor sharing a GPU change a result.
//
// Tests actors/learner/native_trainer.h.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "actors/learner/batch_plan.h"
#include "actors/learner/token_store.h"
#include "runtime/base/rng.h"
#include "tests/actors/learner/learner_builder.h"
#include "tests/actors/model/tiny_model.h"
#include "tests/seeds.h"

namespace tandem::learner {
namespace {

using model::testing::scratch_folder;
using testing::make_trainer;
using testing::random_batch;
using testing::trainer_config;

TrainerConfig updates_config(const std::filesystem::path& folder, std::int64_t mini_batch_groups,
                             std::int64_t epochs) {
  TrainerConfig config = trainer_config(folder);
  config.algorithm.bypass_mode = false;
  config.batch.mini_batch_groups = mini_batch_groups;
  config.batch.epochs = epochs;
  return config;
}

messages::StepReport train_step(NativeTrainer& trainer) {
  const auto trained = trainer.train(
      random_batch(100 + static_cast<std::uint64_t>(trainer.step().value), trainer.step()));
  EXPECT_TRUE(trained) << trained.error().message;
  return trained ? trained->report : messages::StepReport{};
}

std::vector<std::byte> weights_of(const NativeTrainer& trainer) {
  return {trainer.weights().begin(), trainer.weights().end()};
}

// Each trajectory's index, in the order in which a mini-batch's micro-batches hold them.
std::multiset<std::int32_t> indices_of(const MiniBatch& mini) {
  std::multiset<std::int32_t> all;
  for (const auto* micros : {&mini.learning, &mini.observed})
    for (const MicroBatch& micro : *micros)
      all.insert(micro.sequences.begin(), micro.sequences.end());
  return all;
}

std::vector<bool> flipped(std::vector<bool> values) {
  values.flip();
  return values;
}

TEST(BatchPlan, MiniBatchesAreCutInOrderAndRanksShareThem_BP1_BP2) {
  for_seeds(20, [](std::uint64_t seed) {
    Rng rng(seed);
    constexpr std::int64_t kGroups = 12, kN = 3;
    const TrainBatch batch = random_batch(seed, StepId{0}, {.groups = kGroups, .n = kN});
    std::vector<bool> learns;
    for (std::int64_t g = 0; g < kGroups; ++g) learns.push_back(rng.below(3) != 0);
    TrainerConfig config = trainer_config("unused");
    for (const std::int64_t size : {0, 1, 3, 4, 12}) {
      config.batch.mini_batch_groups = size;
      const std::int64_t mini = size == 0 ? kGroups : size;
      const int ranks = 1 + static_cast<int>(rng.below(3));
      std::vector<std::multiset<std::int32_t>> seen(static_cast<std::size_t>(kGroups / mini));
      for (int rank = 0; rank < ranks; ++rank) {
        const auto plan =
            plan_batch(batch, {learns, flipped(learns)}, config, {.rank = rank, .ranks = ranks});
        ASSERT_TRUE(plan);
        ASSERT_EQ(plan->size(), seen.size());
        for (std::size_t m = 0; m < plan->size(); ++m) {
          seen[m].merge(indices_of((*plan)[m]));
          for (const MicroBatch& micro : (*plan)[m].observed)
            for (const std::int32_t s : micro.sequences)
              EXPECT_FALSE(learns[static_cast<std::size_t>(s / kN)]);
        }
      }
      std::int32_t next = 0;
      for (const std::multiset<std::int32_t>& of_mini : seen) {
        ASSERT_EQ(std::ssize(of_mini), mini * kN);
        for (const std::int32_t index : of_mini) EXPECT_EQ(index, next++);
      }
    }
  });
}

TEST(TokenStore, GivesEachMicroBatchItsOwnValues) {
  const TrainBatch batch = random_batch(3, StepId{0});
  TrainerConfig config = trainer_config("unused");
  config.rows_max = 24;
  const std::vector<bool> all(batch.groups.size(), true);
  const auto plan = plan_batch(batch, {all, flipped(all)}, config, {});
  ASSERT_TRUE(plan);
  ASSERT_GT((*plan)[0].learning.size(), 1u);
  TokenStore store;
  store.reset(batch);
  EXPECT_TRUE(store.empty());
  float next = 0;
  std::vector<std::vector<float>> put;
  for (const MicroBatch& micro : (*plan)[0].learning) {
    std::vector<float>& values = put.emplace_back();
    for (std::size_t m = 0; m < micro.items.size(); ++m) values.push_back(next++);
    store.put(micro, values);
  }
  EXPECT_EQ(static_cast<float>(store.tokens()), next);
  for (std::size_t i = 0; i < put.size(); ++i) {
    std::vector<float> got(put[i].size());
    store.get((*plan)[0].learning[i], got);
    EXPECT_EQ(got, put[i]);
  }
}

// The proximal policy stays where the batch found it, so the second update has ratios beside 1.
TEST(Updates, TheProximalPolicyIsTheOneBeforeTheFirst_NT5) {
  const auto folder = scratch_folder("proximal");
  const messages::StepReport one = train_step(*make_trainer(folder, updates_config(folder, 0, 1)));
  EXPECT_EQ(one.ratio_max, 1);
  EXPECT_EQ(one.ppo_kl, 0);
  const messages::StepReport two = train_step(*make_trainer(folder, updates_config(folder, 0, 2)));
  EXPECT_GT(two.ratio_max, 1.001);
  EXPECT_NE(two.ppo_kl, 0);
  TrainerConfig still = updates_config(folder, 2, 2);
  still.optimizer.lr = 0;
  EXPECT_EQ(train_step(*make_trainer(folder, still)).ratio_max, 1) << "no weight has moved";
}

// The comparison with the engine is of the weights before the first update, all tokens of them.
TEST(Updates, LogProbabilitiesAreComparedBeforeTheFirst) {
  const auto folder = scratch_folder("compared");
  const messages::StepReport one = train_step(*make_trainer(folder, updates_config(folder, 0, 1)));
  const messages::StepReport many = train_step(*make_trainer(folder, updates_config(folder, 2, 3)));
  EXPECT_EQ(many.tokens_at_staleness_0, one.tokens_at_staleness_0);
  EXPECT_NEAR(many.logprob_diff_mean, one.logprob_diff_mean, 1e-12);
  EXPECT_EQ(many.logprob_diff_max_at_staleness_0, one.logprob_diff_max_at_staleness_0);
  TrainerConfig bypass = updates_config(folder, 2, 3);
  bypass.algorithm.bypass_mode = true;  // nothing is kept: of the first mini-batch alone
  const messages::StepReport first = train_step(*make_trainer(folder, bypass));
  EXPECT_LT(first.tokens_at_staleness_0, one.tokens_at_staleness_0);
  EXPECT_LE(first.logprob_diff_max_at_staleness_0, one.logprob_diff_max_at_staleness_0);
}

TEST(Updates, OneRateForAllOfABatchAndAStepForEach) {
  const auto folder = scratch_folder("rate");
  const auto trainer = make_trainer(folder, updates_config(folder, 2, 2));
  const auto whole = make_trainer(folder, updates_config(folder, 0, 1));
  for (int step = 0; step < 5; ++step)
    EXPECT_EQ(train_step(*trainer).lr, train_step(*whole).lr) << step;
  EXPECT_EQ(trainer->step(), StepId{5});
}

// Everything at once: kept log-probabilities, both kinds of KL, weights, masks.
TrainerConfig full_config(const std::filesystem::path& folder) {
  TrainerConfig config = updates_config(folder, 3, 2);
  AlgorithmConfig& a = config.algorithm;
  a.rollout_is = kernels::ImportanceLevel::kToken;
  a.rollout_is_batch_normalize = true;
  a.use_kl_loss = a.use_kl_in_reward = true;
  a.kl_loss_coef = a.kl_ctrl.kl_coef = 0.1;
  a.kl_penalty = KlPenalty::kLowVarKl;
  a.entropy_coeff = 0.01;
  a.mask_truncated_completions = true;
  return config;
}

TEST(Updates, ResumeToTheBit_TR2) {
  const auto folder = scratch_folder("resume");
  const TrainerConfig config = full_config(folder);
  const auto whole = make_trainer(folder, config);
  train_step(*whole);
  ASSERT_TRUE(whole->save());
  train_step(*whole);
  const auto resumed = make_trainer(folder, config);
  ASSERT_TRUE(resumed->restore());
  train_step(*resumed);
  EXPECT_EQ(weights_of(*resumed), weights_of(*whole));
}

TEST(Updates, RanksAgreeAndDifferFromOneByRoundingAlone) {
  const auto folder = scratch_folder("ranks");
  const TrainerConfig config = full_config(folder);
  const auto alone = make_trainer(folder, config);
  std::vector<messages::StepReport> wanted{train_step(*alone), train_step(*alone)};
  ASSERT_TRUE(wanted[1].reward_kl_penalty);
  EXPECT_NE(*wanted[1].reward_kl_penalty, 0) << "the reference is the start of RL";
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    const auto ends =
        testing::run_gang(folder, config, {.ranks = ranks}, [&](NativeTrainer& trainer) {
          for (const messages::StepReport& one : wanted) {
            const messages::StepReport report = train_step(trainer);
            EXPECT_NEAR(report.loss, one.loss, 1e-3);
            EXPECT_NEAR(*report.ratio_max, *one.ratio_max, 1e-3);
            EXPECT_NEAR(*report.kl_loss, *one.kl_loss, 1e-4);
            EXPECT_NEAR(*report.reward_kl_penalty, *one.reward_kl_penalty, 1e-5);
            EXPECT_NEAR(*report.rollout_is_mean, *one.rollout_is_mean, 1e-4);
            EXPECT_NEAR(*report.rollout_is_batch_norm_factor, *one.rollout_is_batch_norm_factor,
                        1e-4);
            EXPECT_EQ(report.tokens_trained, one.tokens_trained);
          }
        });
    for (const testing::RankEnd& end : ends) {
      EXPECT_EQ(end.error, "");
      EXPECT_EQ(end.weights, ends[0].weights);
    }
  }
}

// Tokens without a gradient count in the mean too, also where only a part of them is observed.
TEST(Updates, ImportanceWeightsAreDividedByTheMeanOfAllTokens_OG1) {
  const auto folder = scratch_folder("normalized");
  TrainerConfig config = updates_config(folder, 0, 1);
  config.algorithm.rollout_is = kernels::ImportanceLevel::kToken;
  TrainBatch batch = random_batch(7, StepId{0});
  for (TrainTrajectory& equal : batch.groups[0].trajectories) equal.reward = 1;
  for (TrainTrajectory& equal : batch.groups[1].trajectories) equal.reward = 0;
  const auto train_with = [&](bool normalizes, double observes) {
    config.algorithm.rollout_is_batch_normalize = normalizes;
    config.observe_fraction = observes;
    const auto trainer = make_trainer(folder, config);
    const auto trained = trainer->train(batch);
    EXPECT_TRUE(trained);
    return std::pair(weights_of(*trainer), trained->report);
  };
  const auto [plain, unscaled] = train_with(false, 1);
  const auto [all, report] = train_with(true, 1);
  const auto [some, sampled] = train_with(true, 0.01);
  EXPECT_FALSE(unscaled.rollout_is_batch_norm_factor);
  ASSERT_TRUE(report.rollout_is_batch_norm_factor && sampled.rollout_is_batch_norm_factor);
  EXPECT_NEAR(*report.rollout_is_batch_norm_factor, *report.rollout_is_mean, 1e-6)
      << "weights are reported before they are divided";
  EXPECT_NE(*report.rollout_is_batch_norm_factor, 1);
  EXPECT_EQ(*report.rollout_is_batch_norm_factor, *sampled.rollout_is_batch_norm_factor);
  EXPECT_EQ(all, some);
  EXPECT_NE(all, plain);
}

// A completion that was cut off moves nothing: its log-probabilities may be anything.
TEST(Updates, TruncatedCompletionsAreLeftOutWhereAsked_AD3) {
  const auto folder = scratch_folder("masked");
  TrainerConfig config = updates_config(folder, 0, 1);
  const auto train_with = [&](bool masked, float shift) {
    config.algorithm.bypass_mode = true;
    config.algorithm.mask_truncated_completions = masked;
    const auto trainer = make_trainer(folder, config);
    TrainBatch batch = random_batch(7, StepId{0});
    for (BatchGroup& group : batch.groups) {
      group.trajectories[0].truncated = true;
      for (float& logprob : group.trajectories[0].logprobs) logprob += shift;
    }
    EXPECT_TRUE(trainer->train(batch));
    return weights_of(*trainer);
  };
  EXPECT_EQ(train_with(true, 0), train_with(true, -2));
  EXPECT_NE(train_with(false, 0), train_with(false, -2));
}

}  // namespace
}  // namespace tandem::learner
