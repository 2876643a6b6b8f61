// What a watched batch tells of its tokens: they add up to the batch's own figures, and to look
// changes nothing.
#include "actors/learner/token_watch.h"

#include <gtest/gtest.h>

#include <map>

#include "actors/learner/native_trainer.h"
#include "tests/actors/learner/learner_builder.h"

namespace tandem::learner {
namespace {

using testing::random_batch;

std::filesystem::path watch_folder(const std::string& name) {
  return ::testing::TempDir() + "tandem_token_watch_" + name;
}

struct Seen {
  TrainedStep trained;
  std::vector<WatchedCompletion> completions;
};

Seen watched(const TrainerConfig& config, const TrainBatch& batch, const std::string& name) {
  const auto folder = watch_folder(name);
  TokenWatch watch{.on = true};
  const auto trainer = testing::make_trainer(folder, config);
  trainer->watch(&watch);
  auto trained = trainer->train(batch);
  EXPECT_TRUE(trained) << trained.error().message;
  return {*std::move(trained), std::move(watch.completions)};
}

double loss_of(const Seen& seen) {
  double sum = 0;
  for (const WatchedCompletion& one : seen.completions)
    for (const float loss : one.losses) sum += static_cast<double>(loss);
  return sum;
}

TEST(TokenWatch, EveryCompletionIsSeenOnceAndTheLossesAddUp) {
  const TrainBatch batch = random_batch(1, StepId{0});
  const Seen seen = watched(testing::trainer_config(watch_folder("one")), batch, "one");
  std::map<std::size_t, const WatchedCompletion*> of;
  for (const WatchedCompletion& one : seen.completions) of[one.trajectory] = &one;
  std::size_t next = 0;
  for (const BatchGroup& group : batch.groups)
    for (const TrainTrajectory& trajectory : group.trajectories) {
      ASSERT_TRUE(of.contains(next)) << next << ": a group without a gradient is seen too";
      const WatchedCompletion& one = *of[next];
      EXPECT_EQ(one.update, 0);
      EXPECT_EQ(one.logprobs.size(), trajectory.tokens.size());
      EXPECT_EQ(one.losses.size(), trajectory.tokens.size());
      EXPECT_EQ(one.entropies.size(), trajectory.tokens.size());
      EXPECT_EQ(one.advantages.front(), seen.trained.report.advantages[next]);
      EXPECT_TRUE(one.reference.empty());
      ++next;
    }
  EXPECT_EQ(seen.completions.size(), next);
  EXPECT_NEAR(loss_of(seen), seen.trained.report.loss, 1e-6);
  EXPECT_NE(seen.trained.report.loss, 0);
}

TEST(TokenWatch, ToLookChangesNoWeight) {
  const TrainBatch batch = random_batch(2, StepId{0});
  const TrainerConfig config = testing::trainer_config(watch_folder("look"));
  const auto blind = testing::make_trainer(watch_folder("look"), config)->train(batch);
  ASSERT_TRUE(blind);
  const Seen seen = watched(config, batch, "look");
  EXPECT_EQ(seen.trained.checksum, blind->checksum);
  EXPECT_EQ(seen.trained.report.grad_norm, blind->report.grad_norm);
}

// Two mini-batches, gone through twice: each completion is in two of the four updates.
TEST(TokenWatch, EachUpdateHasItsOwnFigures) {
  TrainerConfig config = testing::trainer_config(watch_folder("updates"));
  config.batch.mini_batch_groups = 3;
  config.batch.epochs = 2;
  config.algorithm.bypass_mode = false;
  config.algorithm.use_kl_loss = true;
  config.algorithm.kl_loss_coef = 0.1;
  const TrainBatch batch = random_batch(3, StepId{0});
  const Seen seen = watched(config, batch, "updates");
  std::map<std::size_t, std::vector<const WatchedCompletion*>> of;
  for (const WatchedCompletion& one : seen.completions) of[one.trajectory].push_back(&one);
  EXPECT_EQ(of.size(), seen.trained.report.advantages.size());
  for (const auto& [trajectory, updates] : of) {
    ASSERT_EQ(updates.size(), 2u);
    EXPECT_EQ(updates[1]->update, updates[0]->update + 2);
    EXPECT_EQ(updates[0]->proximal, updates[1]->proximal) << "that of the first update's weights";
    EXPECT_NE(updates[0]->logprobs, updates[1]->logprobs);
    EXPECT_EQ(updates[0]->reference.size(), updates[0]->logprobs.size());
  }
  EXPECT_NEAR(loss_of(seen) / 4, seen.trained.report.loss, 1e-6);
}

TEST(TokenWatch, ThatIsOffHoldsNothing) {
  TokenWatch watch;
  const auto folder = watch_folder("off");
  const auto trainer = testing::make_trainer(folder, testing::trainer_config(folder));
  trainer->watch(&watch);
  ASSERT_TRUE(trainer->train(random_batch(1, StepId{0})));
  EXPECT_TRUE(watch.completions.empty());
  watch.on = true;
  ASSERT_TRUE(trainer->train(random_batch(1, StepId{1})));
  EXPECT_FALSE(watch.completions.empty());
}

}  // namespace
}  // namespace tandem::learner
