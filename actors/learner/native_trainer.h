// Trains the model: one rank of the data-parallel gang. Each rank has all weights and computes its
// share of the groups; gradients are summed in rank order. Without `shards` every rank has all
// AdamW moments and updates all weights. With `shards` each rank updates its own shards
// (sharded_update.h). Checkpoints are the same in both cases, and can be continued with any number
// of ranks.
//
// On a GPU weights, gradients and moments lie in its memory, and the host keeps a copy of the
// published weights of the last step. Where the model computes in bf16, master weights, gradients
// and moments are f32; published weights, and the reference, are the master weights rounded to
// bf16.
//
// With shards a step ends before all weights have come from the other ranks, unless the rank
// publishes them: the next forward waits for them layer by layer. Rank 0 publishes each step of RL;
// the other ranks, and the steps of a warm start, publish nothing.
//
// Rank 0 is driven through Trainer, by one thread. Every other rank calls follow(), which repeats
// the work of rank 0 as commands over the collective say, and returns when rank 0 leaves.
//
//   NT-1  A zero-variance group has no policy gradient. KL loss, entropy bonus, denominators and
//         metrics are of its tokens too; without these two terms it has a forward and no backward.
//   NT-2  At staleness 0 the training forward repeats the engine's log-probabilities to the bit.
//   NT-3  lr = 0 leaves the weights as they are, to the bit.
//   NT-4  A gradient that is not finite leaves weights, moments and AdamW's t as they are; the step
//         counts as done (skipped_steps.h).
//   NT-5  A batch is epochs times as many updates as it has mini-batches (batch_plan.h), all at one
//         learning rate; advantages, and where needed the proximal and the reference policy's
//         log-probabilities, are computed once, at the weights before the first.
#pragma once

#include <memory>

#include "actors/learner/trainer.h"
#include "actors/learner/trainer_setup.h"

namespace tandem::actors {

class NativeTrainer final : public Trainer {
 public:
  // Errors: too little memory, or kInvalid where a setting contradicts the model or the device.
  static Result<std::unique_ptr<NativeTrainer>> make(NativeTrainerSetup setup);
  ~NativeTrainer() override;

  Result<std::optional<StepId>> restore() override;
  StepId step() const override;
  std::span<const std::byte> weights() const override;
  Result<WarmStartSlice> warm_start() override;
  Result<TrainedStep> train(const TrainBatch& batch) override;
  std::optional<std::span<const std::byte>> older(PolicyVersion version) const override;
  Result<SavedCheckpoint> save() override;

  // For ranks >= 1: follows rank 0 until a stop command (no Error) or until the gang breaks.
  // weights() are the newest ones only after a stop.
  Result<void> follow();

  // For rank 0: makes follow() of the other ranks return. Nothing else may be called afterwards.
  Result<void> stop_gang();

 private:
  class Impl;
  explicit NativeTrainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::actors
