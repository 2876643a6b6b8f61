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
//         metrics are of its tokens too; without these two terms it has no backward, and a forward
//         only where it is in the sample of observed_groups.h.
//   NT-2  At staleness 0 the training forward repeats the engine's log-probabilities to the bit.
//   NT-3  lr = 0 leaves the weights as they are, to the bit.
//   NT-4  A gradient that is not finite leaves weights, moments and AdamW's t as they are; the step
//         counts as done (skipped_steps.h).
//   NT-5  A batch is epochs times as many updates as it has mini-batches (batch_plan.h), all at one
//         learning rate; advantages, and where needed the proximal and the reference policy's
//         log-probabilities, are computed once, at the weights before the first.
//   NT-6  An update that teaches nothing, since every advantage of its mini-batch is 0 and the loss
//         has no term on every token, leaves weights, moments and AdamW's t as they are, and decays
//         nothing; the step counts as done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/learner/batch_plan.h"
#include "actors/learner/gang.h"
#include "actors/learner/sharded_update.h"
#include "actors/learner/skipped_steps.h"
#include "actors/learner/trainer.h"
#include "actors/learner/trainer_checkpoint.h"
#include "actors/learner/trainer_setup.h"
#include "actors/learner/warm_start.h"
#include "runtime/device/queue.h"

namespace tandem::learner {

class NativeTrainer final : public Trainer {
 public:
  // Errors: too little memory, or kInvalid where a setting contradicts the model or the device.
  static Result<std::unique_ptr<NativeTrainer>> make(NativeTrainerSetup setup);

  Result<std::optional<StepId>> restore() override;
  StepId step() const override { return step_; }
  // The whole arena that is published: that of the last step of RL, or of the start of RL.
  std::span<const std::byte> weights() const override { return weights_.published(); }
  std::vector<float> probe() const override { return probe_; }
  Result<WarmStartSlice> warm_start() override;
  Result<TrainedStep> train(const TrainBatch& batch) override;
  std::optional<std::span<const std::byte>> older(PolicyVersion version) const override;
  void keep(std::vector<StepId> steps) override { saves_.kept = std::move(steps); }
  Result<SavedCheckpoint> save() override;

  // For ranks >= 1: follows rank 0 until a stop command (no Error) or until the gang breaks.
  // weights() are the newest ones only after a stop.
  Result<void> follow();

  // While it is on, `tokens` gets the figures of this rank's completions, those of groups without a
  // gradient too (NT-1). That changes no weight. `tokens` outlives this object.
  void watch(TokenWatch* tokens) { memory_.pass.watch(tokens); }
  // For rank 0: the hash that a checkpoint of the weights as they are would name.
  std::string weights_sha256();

  // For rank 0: makes follow() of the other ranks return. Nothing else may be called afterwards.
  Result<void> stop_gang();

 private:
  NativeTrainer(NativeTrainerSetup setup, TrainerArenas arenas);

  Result<void> load(const std::filesystem::path& directory, const TrainerState& state);
  Result<void> load_master(const std::filesystem::path& directory, const TrainerState& state);
  bool holds_other_dtype(const std::filesystem::path& directory, const TrainerState& state) const;
  Result<void> load_older(const std::filesystem::path& directory, const TrainerState& state);
  void keep_older();
  Result<void> prepare(const TrainBatch& batch, const std::vector<MiniBatch>& plan,
                       BatchAdvantages& advantages, messages::StepReport& report);
  Result<void> normalize_importance(messages::StepReport& report);
  Result<double> update(const MiniBatch& mini, const ShardedUpdate::Step& step);
  Result<messages::StepReport> train_share(const TrainBatch& batch, BatchAdvantages& advantages);
  Result<double> warm_start_step();
  struct Measured {
    double sample_accuracy, loss;
  };
  Result<Measured> measure_held_out();
  LossPass::Hooks begin_gradients();
  Result<void> settle_weights();
  Result<void> publish();
  Result<double> apply_gradients(const ShardedUpdate::Step& step);
  Result<double> apply_whole(const ShardedUpdate::Step& step);
  Result<void> fetch_moments(const Optimizer::HostMoments* to);
  Result<void> load_moments(const std::filesystem::path& directory, const TrainerState& state);
  void start_rl();
  void take_probe();  // weights() have changed, and the policy has them
  void beat() const {
    if (beat_) beat_();
  }
  // Says which kind of work begins: "train", "warm_start", or "commit" for the long piece at the
  // end of an update. Where there are several ranks each of them waits for the others too, and so
  // all are called "train_gang".
  void enter(const char* phase) const {
    if (enter_) enter_(gang_.ranks() > 1 ? "train_gang" : phase);
  }

  Gang gang_;
  StepId step_{};
  std::vector<float> probe_;  // of weights()
  const TrainerConfig config_;
  struct {
    std::vector<StepId> kept;     // by save(), besides the newest
    std::vector<StepId> refused;  // checkpoints that restore() found damaged
    CheckpointClaim claim;        // CP-3; of rank 0
  } saves_;
  const std::unique_ptr<device::ThreadPool> threads_;
  const std::function<void()> beat_;
  const std::function<void(const char* phase)> enter_;
  const model::ModelConfig model_;
  const std::filesystem::path model_directory_;
  TrainerArenas memory_;
  TrainerWeights& weights_;
  // Declared behind the memory that its work uses and the threads, so that it ends before them.
  const device::Queue queue_;
  const device::Stream stream_;
  // Declared behind the memory that it moves and the queue that it waits for, for the same reason.
  std::optional<ShardedUpdate> sharded_;
  std::optional<WarmStartData> warm_start_data_;
  std::int64_t warm_start_steps_ = 0;
  SkippedSteps skipped_;
  bool untrained_ = true;                     // no step has changed the given weights
  std::deque<std::vector<std::byte>> older_;  // versions step - size … step - 1; of rank 0 alone
};

}  // namespace tandem::learner
