// Builders for the learner's tests: a tiny model, batches of random trajectories, trainers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/learner/native_trainer.h"
#include "actors/learner/train_batch.h"

namespace tandem::learner::testing {

struct BatchShape {
  std::int64_t groups = 6;
  std::int64_t n = 4;
  std::int64_t prompt_max = 6;
  std::int64_t completion_max = 7;
};

// Every group but the first has rewards of both kinds; the first is a zero-variance group.
TrainBatch random_batch(std::uint64_t seed, StepId step, const BatchShape& shape = {});

model::ModelConfig learner_model(model::Family family = model::Family::kQwen3);

// Small limits, lr 1e-2, three warm-up steps, checkpoints in `folder`/checkpoints.
TrainerConfig trainer_config(const std::filesystem::path& folder);

// How a trainer shares the optimizer's work with the other ranks; null: it does not.
struct Sharing {
  std::unique_ptr<collective::ShardExchange> shards = nullptr;
  BucketLimits buckets = {};
};

// A trainer of the tiny model with random weights of the seed; `gang` may be null.
std::unique_ptr<NativeTrainer> make_trainer(const std::filesystem::path& folder,
                                            const TrainerConfig& config,
                                            std::unique_ptr<collective::Collective> gang = nullptr,
                                            std::vector<WarmStartRecord> records = {},
                                            device::DeviceKind device = device::DeviceKind::kCpu,
                                            device::DType dtype = device::DType::kF32,
                                            Sharing sharing = {});

// Saves a checkpoint and returns the weights that the trainer publishes: those of the checkpoint,
// rounded to `dtype`.
void expect_publishes_its_checkpoint(NativeTrainer& trainer, device::DType dtype);

struct GangShape {
  int ranks = 2;
  std::vector<std::unique_ptr<collective::ShardExchange>> shards = {};  // one a rank, or none
  BucketLimits buckets = {};
  std::vector<WarmStartRecord> records = {};
  device::DeviceKind device = device::DeviceKind::kCpu;
  device::DType dtype = device::DType::kF32;
};

struct RankEnd {
  std::string error;  // follow()'s, of rank 0 stop_gang()'s; empty: none
  std::vector<std::byte> weights;
};

// Runs `drive` as rank 0 of a gang whose other ranks follow on threads of their own; then lets them
// stop. Returns how each rank ended.
std::vector<RankEnd> run_gang(const std::filesystem::path& folder, const TrainerConfig& config,
                              GangShape shape, const std::function<void(NativeTrainer&)>& drive);

}  // namespace tandem::learner::testing
