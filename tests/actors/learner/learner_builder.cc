#include "tests/actors/learner/learner_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/rng.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::learner::testing {
namespace {

std::int64_t between(Rng& rng, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
}

std::vector<std::int32_t> random_tokens(Rng& rng, std::int64_t count) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(
        rng.below(static_cast<std::uint64_t>(learner_model().vocab_size))));
  return tokens;
}

}  // namespace

TrainBatch random_batch(std::uint64_t seed, StepId step, const BatchShape& shape) {
  Rng rng(seed);
  TrainBatch batch{step, {}};
  for (std::int64_t g = 0; g < shape.groups; ++g) {
    BatchGroup group{GroupId{static_cast<std::uint64_t>(g)},
                     random_tokens(rng, between(rng, 1, shape.prompt_max)),
                     {}};
    for (std::int64_t i = 0; i < shape.n; ++i) {
      TrainTrajectory trajectory;
      trajectory.tokens = random_tokens(rng, between(rng, 1, shape.completion_max));
      for (std::size_t t = 0; t < trajectory.tokens.size(); ++t)
        trajectory.logprobs.push_back(static_cast<float>(-3 + 0.5 * rng.normal()));
      trajectory.oldest = PolicyVersion{step.value - between(rng, 0, 2)};
      trajectory.reward = g == 0 ? 1.0f : (i == 0 ? 1.0f : (i == 1 ? 0.0f : rng.unit() < 0.5));
      group.trajectories.push_back(std::move(trajectory));
    }
    batch.groups.push_back(std::move(group));
  }
  return batch;
}

model::ModelConfig learner_model(model::Family family) {
  model::ModelConfig config = model::testing::tiny_config(family);
  config.head_dim = 16;
  config.vocab_size = 19;
  config.initializer_range = 0.1;
  return config;
}

TrainerConfig trainer_config(const std::filesystem::path& folder) {
  TrainerConfig config;
  config.seed = 5;
  config.optimizer.lr = 1e-2;
  config.optimizer.lr_warmup_steps = 3;
  config.steps_total = 20;
  config.rows_max = 64;
  config.positions_max = 32;
  config.batch.response_length_max = 8;
  config.checkpoints.directory = folder / "checkpoints";
  return config;
}

std::unique_ptr<NativeTrainer> make_trainer(const std::filesystem::path& folder,
                                            const TrainerConfig& config,
                                            std::unique_ptr<collective::Collective> gang,
                                            std::vector<WarmStartRecord> records,
                                            device::DeviceKind device, device::DType dtype,
                                            Sharing sharing) {
  const std::filesystem::path model_folder = folder / "model";
  if (!std::filesystem::exists(model_folder))
    model::testing::write_model_folder(model_folder, learner_model());
  Result<model::Model> model =
      model::load_model(model_folder, {model::InitMode::kRandom, 3, dtype});
  EXPECT_TRUE(model) << model.error().message;
  auto trainer = NativeTrainer::make({.config = config,
                                      .model = *std::move(model),
                                      .records = std::move(records),
                                      .gang = std::move(gang),
                                      .shards = std::move(sharing.shards),
                                      .buckets = sharing.buckets,
                                      .device = device,
                                      .threads = nullptr,
                                      .beat = nullptr});
  EXPECT_TRUE(trainer) << trainer.error().message;
  return *std::move(trainer);
}

void expect_publishes_its_checkpoint(NativeTrainer& trainer, device::DType dtype) {
  const auto saved = trainer.save();
  ASSERT_TRUE(saved) << saved.error().message;
  const auto model = model::load_model(saved->directory, {.dtype = dtype});
  ASSERT_TRUE(model) << model.error().message;
  const device::Arena expected = model::testing::published(model->config, model->weights);
  EXPECT_TRUE(std::ranges::equal(trainer.weights(), expected.bytes()))
      << "step " << trainer.step().value;
}

std::vector<RankEnd> run_gang(const std::filesystem::path& folder, const TrainerConfig& config,
                              GangShape shape, const std::function<void(NativeTrainer&)>& drive) {
  // Logging starts before the threads, as in every process of a rank.
  init_logging("gang", LogLevel::kWarnings);
  auto collectives = collective::make_local_collectives(shape.ranks);
  const auto make = [&](std::size_t rank) {
    Sharing sharing{.shards = nullptr, .buckets = shape.buckets};
    if (!shape.shards.empty()) sharing.shards = std::move(shape.shards[rank]);
    return make_trainer(folder, config, std::move(collectives[rank]), shape.records, shape.device,
                        shape.dtype, std::move(sharing));
  };
  std::vector<RankEnd> ends(collectives.size());
  const auto note = [&](std::size_t rank, const NativeTrainer& trainer, const Result<void>& end) {
    if (!end) ends[rank].error = end.error().message;
    ends[rank].weights.assign(trainer.weights().begin(), trainer.weights().end());
  };
  auto leader = make(0);
  std::vector<std::thread> followers;
  for (std::size_t rank = 1; rank < ends.size(); ++rank)
    followers.emplace_back([&, rank] {
      const auto follower = make(rank);
      note(rank, *follower, follower->follow());
    });
  EXPECT_TRUE(leader->restore());
  drive(*leader);
  note(0, *leader, leader->stop_gang());
  leader.reset();  // which ends the wait of followers that could not be told
  for (std::thread& follower : followers) follower.join();
  return ends;
}

}  // namespace tandem::learner::testing
