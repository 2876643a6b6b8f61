#include "actors/learner/fake_trainer.h"

#include <limits>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/base/rng.h"
#include "runtime/wire/codec.h"

namespace tandem::learner {

FakeTrainer::FakeTrainer(const FakeTrainerConfig& config, std::shared_ptr<FakeStore> store)
    : config_(config), store_(std::move(store)) {
  weights_[0] = derive_seed(config_.seed, "untrained");
}

Result<std::optional<StepId>> FakeTrainer::restore() {
  step_ = {};
  warm_steps_ = 0;
  warm_started_ = false;
  weights_[0] = derive_seed(config_.seed, "untrained");
  older_.clear();
  skipped_ = {};
  if (store_->checkpoints.empty()) return std::optional<StepId>{};
  const auto& [step, checkpoint] = *store_->checkpoints.rbegin();
  step_ = step;
  weights_ = checkpoint.weights;
  older_ = checkpoint.older;
  skipped_ = checkpoint.skipped;
  return std::optional<StepId>{step};
}

Result<WarmStartSlice> FakeTrainer::warm_start() {
  CHECK(!warm_started_ && "trainer.h");
  WarmStartSlice slice{.steps_max = config_.warm_start_steps,
                       .then_wait = config_.warm_start_step_time};
  if (warm_steps_ < config_.warm_start_steps) {
    ++warm_steps_;
    weights_[0] = derive_seed(weights_[0], "warm_start");
  }
  slice.step = warm_steps_;
  slice.done = warm_steps_ == config_.warm_start_steps;
  warm_started_ = slice.done;
  if (slice.done) slice.metric = 1.0;
  return slice;
}

Result<TrainedStep> FakeTrainer::train(const TrainBatch& batch) {
  CHECK(batch.step == step_);
  // The weights depend on everything in the batch: tokens, log-probabilities, rewards and order.
  TrainBatch hashed = batch;
  if (!config_.ids_count)
    for (BatchGroup& group : hashed.groups) group.group = {};
  const std::string bytes = wire::encode(hashed);
  older_.push_back(weights_);
  if (std::ssize(older_) > config_.older_versions) older_.pop_front();
  const bool finite = !config_.nonfinite.contains(step_);
  const double norm = finite ? 1 : std::numeric_limits<double>::quiet_NaN();
  auto counted = count_step({.kind = "step", .number = step_.value + 1, .norm = norm},
                            config_.nonfinite_steps_max, skipped_);
  if (!counted) return counted.error();
  // A step without a finite gradient counts but leaves the weights alone (NT-4).
  if (finite) weights_[0] = derive_seed(weights_[0], {checksum64(std::as_bytes(std::span(bytes)))});
  step_ = StepId{step_.value + 1};
  TrainedStep out{.checksum = checksum(), .then_wait = config_.train_time};
  out.report.grad_norm = norm;
  out.report.skipped_in_row = skipped_.in_row;
  out.report.recorded_bytes = 100 * static_cast<std::uint64_t>(step_.value + 1);
  out.report.steps_skipped = skipped_.total;
  for (std::optional<double>* figure :
       {&out.report.entropy, &out.report.ppo_kl, &out.report.pg_clipfrac,
        &out.report.pg_clipfrac_low, &out.report.pg_clipfrac_high})
    *figure = 0;
  for (std::optional<double>* figure :
       {&out.report.ratio_max, &out.report.kl_loss, &out.report.pg_clipfrac_lower,
        &out.report.reward_kl_penalty, &out.report.rollout_is_mean,
        &out.report.rollout_is_eff_sample_size, &out.report.rollout_is_batch_norm_factor,
        &out.report.rollout_rs_masked_fraction, &out.report.rollout_rs_seq_masked_fraction,
        &out.report.rollout_is_veto_fraction, &out.report.rollout_is_catastrophic_token_fraction})
    *figure = 1;  // every figure is set, so that tests see all columns of reports
  for (const BatchGroup& group : batch.groups) {
    for (const TrainTrajectory& trajectory : group.trajectories) {
      out.report.tokens_trained += trajectory.tokens.size();
      out.report.advantages.push_back(trajectory.reward);
    }
  }
  return out;
}

std::optional<std::span<const std::byte>> FakeTrainer::older(PolicyVersion version) const {
  // older_ holds the versions step - size … step - 1.
  const std::int64_t index = version.value - (step_.value - std::ssize(older_));
  if (index < 0 || index >= std::ssize(older_)) return std::nullopt;
  return std::as_bytes(std::span(older_[static_cast<std::size_t>(index)]));
}

Result<SavedCheckpoint> FakeTrainer::save() {
  if (store_->full)
    return Error{.code = store_->code,
                 .message = "cannot save checkpoint step-" + std::to_string(step_.value) +
                            ": No space left on device",
                 .os_error = store_->os_error};
  if (store_->refusals > 0) {
    --store_->refusals;
    return Error{.message = "cannot save checkpoint: Input/output error"};
  }
  // A repeated save of one step replaces the earlier one, as NativeTrainer's does.
  store_->checkpoints[step_] = {weights_, older_, skipped_};
  return SavedCheckpoint{step_, "fake/step-" + std::to_string(step_.value), sha256_hex(weights())};
}

std::uint64_t FakeTrainer::checksum() const { return checksum64(weights()); }

}  // namespace tandem::learner
