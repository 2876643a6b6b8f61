// Builders for the learner's tests: a tiny model, batches of random trajectories, trainers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "actors/learner/native_trainer.h"
#include "actors/learner/train_batch.h"

namespace tandem::actors::testing {

struct BatchShape {
  std::int64_t groups = 6;
  std::int64_t n = 4;
  std::int64_t prompt_max = 6;
  std::int64_t completion_max = 7;
};

// Every group but the first has rewards of both kinds; the first is a zero-variance group.
TrainBatch random_batch(std::uint64_t seed, StepId step, const BatchShape& shape = {});

ModelConfig learner_model();

// Small limits, lr 1e-2, three warm-up steps, checkpoints in `folder`/checkpoints.
TrainerConfig trainer_config(const std::filesystem::path& folder);

// A trainer of the tiny model with random weights of the seed; `gang` may be null.
std::unique_ptr<NativeTrainer> make_trainer(const std::filesystem::path& folder,
                                            const TrainerConfig& config,
                                            std::unique_ptr<runtime::Collective> gang = nullptr,
                                            std::vector<WarmStartRecord> records = {},
                                            runtime::DeviceKind device = runtime::DeviceKind::kCpu,
                                            runtime::DType dtype = runtime::DType::kF32);

}  // namespace tandem::actors::testing
