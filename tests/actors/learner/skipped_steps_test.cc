// Steps whose gradient is not finite, in gangs that sum all gradients and in gangs that share the
// update. The gradient overflows because of a reward near a float's limit, which is not divided by
// its group's deviation, times a large ratio.
#include "actors/learner/skipped_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "actors/learner/trainer_checkpoint.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "tests/actors/learner/learner_builder.h"
#include "tests/actors/learner/sharded_gang.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::learner {
namespace {

using model::testing::scratch_folder;
using testing::expect_one_end;
using testing::GangShape;
using testing::make_trainer;
using testing::random_batch;
using testing::RankEnd;
using testing::replicated;
using testing::run_gang;
using testing::sharing;
using testing::trainer_config;

TrainBatch sound_batch(std::uint64_t seed, const Trainer& trainer) {
  return random_batch(seed, trainer.step());
}

TrainBatch overflowing_batch(const Trainer& trainer) {
  TrainBatch batch = random_batch(77, trainer.step());
  batch.groups[2].trajectories[1].reward = -3e38f;
  batch.groups[2].trajectories[1].logprobs[0] = -1000;
  return batch;
}

// A rate that does not depend on the step, so that a skipped step leaves no trace.
TrainerConfig steady_config(const std::filesystem::path& folder, std::int64_t in_row_max = 5) {
  TrainerConfig config = trainer_config(folder);
  config.optimizer.lr_scheduler_type = LrSchedule::kConstant;
  config.optimizer.lr_warmup_steps = 0;
  config.algorithm.norm_adv_by_std_in_grpo = false;
  config.nonfinite_steps_max = in_row_max;
  return config;
}

std::vector<std::pair<std::string, GangShape>> shapes() {
  std::vector<std::pair<std::string, GangShape>> all;
  for (const int ranks : {1, 2, 3})
    all.emplace_back(std::to_string(ranks) + " ranks", replicated(ranks));
  for (const int ranks : {2, 3})
    all.emplace_back(std::to_string(ranks) + " ranks that share the update", sharing(ranks));
  return all;
}

// The part of the optimizer's state that a checkpoint keeps.
struct Saved {
  std::string m, v;
  std::uint64_t optimizer_steps = 0;
  SkippedSteps skipped;
};

Saved save(NativeTrainer& trainer, const CheckpointConfig& config) {
  const auto saved = trainer.save();
  EXPECT_TRUE(saved) << saved.error().message;
  Saved kept;
  const auto state =
      read_checkpoint(config, [&](const std::filesystem::path& path, const TrainerState& s) {
        const auto m = read_file(m_file(path)), v = read_file(v_file(path));
        EXPECT_TRUE(m && v);
        kept = {*m, *v, s.optimizer_steps, s.skipped};
        return Result<void>();
      });
  EXPECT_TRUE(state && *state);
  return kept;
}

TEST(SkippedSteps, AGradientThatIsNotFiniteChangesNothing_NT4_SK1) {
  for (auto& [name, shape] : shapes()) {
    SCOPED_TRACE(name);
    const auto folder = scratch_folder("skip");
    const TrainerConfig config = steady_config(folder);
    const auto drive = [&](NativeTrainer& trainer) {
      for (const std::uint64_t seed : {1, 2})
        ASSERT_TRUE(trainer.train(sound_batch(seed, trainer)));
      const Saved before = save(trainer, config.checkpoints);
      const std::uint64_t weights = checksum64(trainer.weights());
      const auto skipped = trainer.train(overflowing_batch(trainer));
      ASSERT_TRUE(skipped) << skipped.error().message;
      EXPECT_FALSE(std::isfinite(skipped->report.grad_norm));
      EXPECT_EQ(skipped->report.skipped_in_row, 1u);
      EXPECT_EQ(skipped->report.steps_skipped, 1u);
      EXPECT_GT(skipped->report.tokens_trained, 0u);
      EXPECT_EQ(skipped->checksum, weights);
      EXPECT_EQ(checksum64(trainer.weights()), weights);
      EXPECT_EQ(trainer.step(), StepId{3});
      const Saved after = save(trainer, config.checkpoints);
      EXPECT_EQ(after.m, before.m);
      EXPECT_EQ(after.v, before.v);
      EXPECT_EQ(before.optimizer_steps, 2u);
      EXPECT_EQ(after.optimizer_steps, 2u);
      EXPECT_EQ(after.skipped.total, 1u);
      const auto next = trainer.train(sound_batch(3, trainer));
      ASSERT_TRUE(next) << next.error().message;
      EXPECT_TRUE(std::isfinite(next->report.grad_norm) && std::isfinite(next->report.loss));
      EXPECT_EQ(next->report.skipped_in_row, 0u);
      EXPECT_EQ(next->report.steps_skipped, 1u);
    };
    const int ranks = shape.ranks;
    const bool shares = !shape.shards.empty();
    const auto ends = run_gang(folder, config, std::move(shape), drive);
    expect_one_end(ends);
    // The same run without the batch.
    const auto other = scratch_folder("no-skip");
    const auto clean =
        run_gang(other, steady_config(other), shares ? sharing(ranks) : replicated(ranks),
                 [&](NativeTrainer& trainer) {
                   for (const std::uint64_t seed : {1, 2, 3})
                     ASSERT_TRUE(trainer.train(sound_batch(seed, trainer)));
                 });
    EXPECT_EQ(ends.front().weights, clean.front().weights);
  }
}

// Every group has the same rewards within itself.
TrainBatch equal_batch(const Trainer& trainer) {
  TrainBatch batch = random_batch(7, trainer.step());
  for (BatchGroup& group : batch.groups)
    for (TrainTrajectory& trajectory : group.trajectories) trajectory.reward = 1;
  return batch;
}

// Neither old momentum nor weight decay moves a weight, on any rank.
TEST(SkippedSteps, ABatchThatTeachesNothingChangesNothing_NT6) {
  for (auto& [name, shape] : shapes()) {
    SCOPED_TRACE(name);
    const auto folder = scratch_folder("nothing");
    TrainerConfig config = steady_config(folder);
    config.optimizer.weight_decay = 0.1;
    const auto drive = [&](NativeTrainer& trainer) {
      for (const std::uint64_t seed : {1, 2})
        ASSERT_TRUE(trainer.train(sound_batch(seed, trainer)));
      const Saved before = save(trainer, config.checkpoints);
      const std::uint64_t weights = checksum64(trainer.weights());
      const auto nothing = trainer.train(equal_batch(trainer));
      ASSERT_TRUE(nothing) << nothing.error().message;
      EXPECT_EQ(nothing->report.grad_norm, 0);
      EXPECT_EQ(nothing->report.updates_without_gradient, 1u);
      EXPECT_EQ(nothing->report.steps_skipped, 0u);
      EXPECT_EQ(nothing->report.skipped_in_row, 0u);
      EXPECT_GT(nothing->report.tokens_trained, 0u);
      EXPECT_EQ(nothing->checksum, weights);
      EXPECT_EQ(trainer.step(), StepId{3});
      const Saved after = save(trainer, config.checkpoints);
      EXPECT_EQ(after.m, before.m);
      EXPECT_EQ(after.v, before.v);
      EXPECT_EQ(after.optimizer_steps, 2u);
      const auto next = trainer.train(sound_batch(3, trainer));
      ASSERT_TRUE(next) << next.error().message;
      EXPECT_EQ(next->report.updates_without_gradient, 0u);
      EXPECT_NE(next->checksum, weights);
    };
    expect_one_end(run_gang(folder, config, std::move(shape), drive));
  }
}

// A term that acts on every token makes it an ordinary step.
TEST(SkippedSteps, AnEntropyBonusTeachesEvenThere_NT6) {
  const auto folder = scratch_folder("bonus");
  TrainerConfig config = steady_config(folder);
  config.algorithm.entropy_coeff = 0.1;
  const auto trainer = make_trainer(folder, config);
  const std::uint64_t weights = checksum64(trainer->weights());
  const auto trained = trainer->train(equal_batch(*trainer));
  ASSERT_TRUE(trained);
  EXPECT_EQ(trained->report.updates_without_gradient, 0u);
  EXPECT_NE(trained->checksum, weights);
}

TEST(SkippedSteps, TheScheduleCountsThem) {
  const auto folder = scratch_folder("schedule");
  TrainerConfig config = trainer_config(folder);
  config.algorithm.norm_adv_by_std_in_grpo = false;
  const auto trainer = make_trainer(folder, config);
  const auto first = trainer->train(overflowing_batch(*trainer));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_NEAR(first->report.lr, 1e-2 / 3, 1e-12);
  const auto second = trainer->train(sound_batch(1, *trainer));
  ASSERT_TRUE(second);
  EXPECT_NEAR(second->report.lr, 2e-2 / 3, 1e-12);
}

TEST(SkippedSteps, OneTooManyInARowIsAnErrorOnEveryRank_SK1) {
  for (auto& [name, shape] : shapes()) {
    SCOPED_TRACE(name);
    const auto folder = scratch_folder("row");
    std::string error;
    const auto ends =
        run_gang(folder, steady_config(folder, 2), std::move(shape), [&](NativeTrainer& trainer) {
          for (const bool overflows : {true, true, false, true, true})
            ASSERT_TRUE(
                trainer.train(overflows ? overflowing_batch(trainer) : sound_batch(1, trainer)));
          const auto last = trainer.train(overflowing_batch(trainer));
          ASSERT_FALSE(last);
          EXPECT_EQ(last.error().code, ErrorCode::kInvalid) << "a restart would meet it again";
          error = last.error().message;
        });
    for (const char* part : {"step 6 has a gradient that is not finite", "in a row: 3",
                             "learner.max_nonfinite_steps is 2", "learner.optimizer.lr",
                             "learner.optimizer.grad_clip", "model.dtype", "--resume"})
      EXPECT_NE(error.find(part), std::string::npos) << part << " is not in: " << error;
    for (std::size_t rank = 1; rank < ends.size(); ++rank) EXPECT_EQ(ends[rank].error, error);
  }
}

TEST(SkippedSteps, NoneIsAllowedWhereTheKeyIsZero) {
  const auto folder = scratch_folder("none");
  const auto trainer = make_trainer(folder, steady_config(folder, 0));
  EXPECT_TRUE(trainer->train(sound_batch(1, *trainer)));
  const auto ended = trainer->train(overflowing_batch(*trainer));
  ASSERT_FALSE(ended);
  EXPECT_NE(ended.error().message.find("max_nonfinite_steps is 0"), std::string::npos);
}

TEST(SkippedSteps, AResumedRunGoesOnCounting_TR2) {
  for (auto& [name, shape] : shapes()) {
    SCOPED_TRACE(name);
    const auto folder = scratch_folder("resume-count");
    const TrainerConfig config = steady_config(folder, 3);
    const auto first = make_trainer(folder, config);
    ASSERT_TRUE(first->train(sound_batch(1, *first)));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(first->train(overflowing_batch(*first)));
    ASSERT_TRUE(first->save());
    std::string error;
    const auto ends = run_gang(folder, config, std::move(shape), [&](NativeTrainer& trainer) {
      const auto third = trainer.train(overflowing_batch(trainer));
      ASSERT_TRUE(third) << third.error().message;
      EXPECT_EQ(third->report.skipped_in_row, 3u);
      EXPECT_EQ(third->report.steps_skipped, 3u);
      ASSERT_TRUE(trainer.restore());
      const auto again = trainer.train(overflowing_batch(trainer));
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_EQ(again->report.steps_skipped, 3u) << "a repeated step counts once";
      const auto fourth = trainer.train(overflowing_batch(trainer));
      ASSERT_FALSE(fourth);
      error = fourth.error().message;
    });
    EXPECT_NE(error.find("in a row: 4"), std::string::npos) << error;
    for (std::size_t rank = 1; rank < ends.size(); ++rank) EXPECT_EQ(ends[rank].error, error);
  }
}

// "a b" -> "a". Under this rate the first step moves the weights so far that their squares overflow
// a float.
TrainerConfig exploding_warm_start(const std::filesystem::path& folder, std::int64_t in_row_max) {
  TrainerConfig config = steady_config(folder, in_row_max);
  config.warm_start = WarmStartConfig{.lr = 1e38, .batch_size = 8, .max_steps = 7, .until = {}};
  return config;
}

std::vector<WarmStartRecord> records() {
  std::vector<WarmStartRecord> all;
  for (std::int32_t a = 2; a < 12; ++a) all.push_back({{a, 3}, {a, 1}});
  return all;
}

TEST(SkippedSteps, AWarmStartSkipsAndCountsThemToo_NT4) {
  for (auto& [name, shape] : shapes()) {
    SCOPED_TRACE(name);
    const auto folder = scratch_folder("warm-skip");
    const TrainerConfig config = exploding_warm_start(folder, 100);
    shape.records = records();
    const auto drive = [&](NativeTrainer& trainer) {
      std::uint64_t weights = 0;
      for (std::int32_t step = 1; step <= 7; ++step) {
        const auto slice = trainer.warm_start();
        ASSERT_TRUE(slice) << slice.error().message;
        EXPECT_EQ(slice->steps_skipped, static_cast<std::uint64_t>(step - 1));
        EXPECT_EQ(slice->done, step == 7);
      }
      const Saved kept = save(trainer, config.checkpoints);
      EXPECT_EQ(kept.skipped.total, 6u);
      weights = checksum64(trainer.weights());
      const auto first = trainer.train(sound_batch(1, trainer));
      ASSERT_TRUE(first) << first.error().message;
      EXPECT_EQ(first->report.steps_skipped, 7u) << "these weights have no finite gradient";
      EXPECT_EQ(first->checksum, weights);
    };
    expect_one_end(run_gang(folder, config, std::move(shape), drive));
  }
}

TEST(SkippedSteps, AWarmStartWithTooManyInARowEnds) {
  const auto folder = scratch_folder("warm-end");
  const auto trainer = make_trainer(folder, exploding_warm_start(folder, 2), nullptr, records());
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(trainer->warm_start());
  const auto ended = trainer->warm_start();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kInvalid);
  EXPECT_NE(ended.error().message.find("warm-start step 4"), std::string::npos);
}

// The report does not depend on which rank computes the group, nor on what comes after the token.
TEST(SkippedSteps, ALogProbabilityThatIsNoNumberIsReportedAsSuch) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const int ranks : {1, 2, 3})
    for (const std::size_t group : {1u, 2u, 3u}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, group " + std::to_string(group));
      const auto folder = scratch_folder("nan");
      expect_one_end(run_gang(folder, steady_config(folder), replicated(ranks), [&](auto& trainer) {
        TrainBatch batch = sound_batch(77, trainer);
        batch.groups[group].trajectories[1].logprobs[0] = kNan;
        batch.groups[group].trajectories[1].oldest = PolicyVersion{trainer.step().value};
        const auto trained = trainer.train(batch);
        ASSERT_TRUE(trained) << trained.error().message;
        EXPECT_TRUE(std::isnan(trained->report.logprob_diff_max_at_staleness_0));
        EXPECT_EQ(trained->report.skipped_in_row, 1u);
        const auto next = trainer.train(sound_batch(1, trainer));
        ASSERT_TRUE(next) << next.error().message;
        for (const double figure :
             {next->report.logprob_diff_max_at_staleness_0, next->report.loss,
              *next->report.entropy, *next->report.ppo_kl, next->report.logprob_diff_mean})
          EXPECT_TRUE(std::isfinite(figure));
      }));
    }
}

}  // namespace
}  // namespace tandem::learner
