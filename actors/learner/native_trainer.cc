// Every rank runs the same functions in the same order: rank 0 because the learner actor calls
// them, the others from follow(). The order matters, because each function that sums or agrees over
// the gang waits for all ranks. With shards weights may still be on their way when a step ends, so
// whoever needs all of them calls settle_weights() first.
//
// The warm start is in native_trainer_warm_start.cc, checkpoints are in native_trainer_resume.cc.
#include "actors/learner/native_trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "actors/learner/advantage.h"
#include "actors/learner/lr_schedule.h"
#include "actors/learner/step_report.h"
#include "actors/model/probe.h"
#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/wire/codec.h"

namespace tandem::learner {
namespace {

// Importance weights with a smaller mean are not normalised.
constexpr double kImportanceMeanMin = 1e-8;

}  // namespace

Result<std::unique_ptr<NativeTrainer>> NativeTrainer::make(NativeTrainerSetup setup) {
  if (auto sound = check_setup(setup); !sound) return sound.error();
  if (setup.device == device::DeviceKind::kCuda) {
    const device::MemoryInfo gpu = device::memory_info(setup.device);
    const int sharing = setup.shards ? setup.shards->size() : 1;
    auto room = check_trainer_memory(
        trainer_memory(setup.model.config, setup.config, setup.device, sharing), gpu.free_bytes,
        gpu.total_bytes, setup.config);
    if (!room) return room.error();
  }
  Result<TrainerArenas> arenas = allocate_arenas(setup);
  if (!arenas) return arenas.error();
  return std::unique_ptr<NativeTrainer>(new NativeTrainer(std::move(setup), *std::move(arenas)));
}

NativeTrainer::NativeTrainer(NativeTrainerSetup setup, TrainerArenas arenas)
    : gang_(std::move(setup.gang), setup.config.collective_timeout),
      config_(std::move(setup.config)),
      threads_(std::move(setup.threads)),
      beat_(std::move(setup.beat)),
      enter_(std::move(setup.enter)),
      model_(std::move(setup.model.config)),
      model_directory_(std::move(setup.model.directory)),
      memory_(std::move(arenas)),
      weights_(memory_.weights),
      queue_(setup.device, threads_.get()),
      stream_(queue_.stream()) {
  if (setup.shards) sharded_.emplace(std::move(setup.shards), cut_buckets(model_, setup.buckets));
  if (config_.warm_start) warm_start_data_.emplace(std::move(setup.records), config_.seed);
  start_rl();
}

// Makes the current weights those that RL starts from; a checkpoint or warm start may follow.
void NativeTrainer::start_rl() {
  step_ = {};
  older_.clear();
  memory_.optimizer.reset(stream_);
  weights_.restart(stream_);
  take_probe();
}

// At temperature 1, whatever the job samples with: servers score prompts so.
void NativeTrainer::take_probe() {
  if (config_.probe_positions == 0 || gang_.rank() > 0) return;
  const auto tokens = model::probe_tokens(model_.vocab_size, config_.probe_positions);
  probe_ = memory_.pass.next_logprobs(stream_, weights_.policy(), tokens);
  // Weights that have diverged are found out by their gradients.
  if (!std::ranges::all_of(probe_, [](float logprob) { return std::isfinite(logprob); }))
    probe_.clear();
}

// Zeroes the gradients, to which micro-batches add. Without shards the hooks returned are empty.
// With shards they wait for weights of the last step, and start the sums of finished gradients.
LossPass::Hooks NativeTrainer::begin_gradients() {
  const device::Arena& all = memory_.gradients;
  device::zero(stream_, all.flat().data, all.manifest().bytes_total);
  if (!sharded_) return {};
  sharded_->begin();
  LossPass::Hooks hooks;
  hooks.needed = [this](std::int64_t end) {
    // After an Error this step comes to nothing, because apply() returns the same Error.
    if (sharded_->gathered(stream_, end)) weights_.follow_master(stream_, end);
  };
  hooks.finished = [this](std::int64_t begin) {
    sharded_->finished(stream_, memory_.gradients, begin);
  };
  return hooks;
}

// Waits until all weights of the last step are there, and makes the policy follow them.
Result<void> NativeTrainer::settle_weights() {
  if (sharded_)
    if (auto settled = sharded_->settle(); !settled) return settled;
  weights_.follow_master(stream_);
  return {};
}

Result<void> NativeTrainer::publish() {
  if (auto settled = settle_weights(); !settled) return settled;
  weights_.publish(stream_);
  take_probe();
  return {};
}

// The update without shards: every rank sums all gradients and updates all weights.
Result<double> NativeTrainer::apply_whole(const ShardedUpdate::Step& step) {
  if (!step.teaches) return 0.0;
  if (gang_.ranks() > 1)
    if (auto summed = gang_.sum(memory_.gradients.f32()); !summed) return summed.error();
  const double squares = memory_.optimizer.squares(stream_, memory_.gradients);
  const double norm = memory_.optimizer.begin_step(step.config, step.lr, squares);
  if (std::isfinite(norm))
    memory_.optimizer.update(stream_, 0, weights_.master(), memory_.gradients);
  return norm;
}

// Sums the ranks' gradients, takes a step and returns the norm. If the norm is not finite, or
// the step teaches nothing, which all ranks see alike, no weight has changed (SK-1, NT-4, NT-6).
// With shards the policy follows the new weights in the next forward or in settle_weights().
Result<double> NativeTrainer::apply_gradients(const ShardedUpdate::Step& step) {
  const Result<double> norm = sharded_ ? sharded_->apply(stream_, gang_, memory_.optimizer, step,
                                                         weights_.master(), memory_.gradients)
                                       : apply_whole(step);
  if (!norm) return norm;
  untrained_ = false;
  if (!std::isfinite(*norm) || !step.teaches) return norm;
  weights_.master_changed();
  if (!sharded_) weights_.follow_master(stream_);
  return norm;
}

// Computes everything that needs the weights before the first update: the log-probabilities to
// keep, and with them the KL penalties and the mean of the importance weights, both of which it
// reports.
Result<void> NativeTrainer::prepare(const TrainBatch& batch, const std::vector<MiniBatch>& plan,
                                    BatchAdvantages& advantages, messages::StepReport& report) {
  if (auto settled = settle_weights(); !settled) return settled.error();
  const LossPass::Models models{weights_.policy(), weights_.reference()};
  for (const MiniBatch& mini : plan)
    for (const auto& [micros, part] : {std::pair(&mini.learning, LossPart::kLearning),
                                       std::pair(&mini.observed, LossPart::kObserved)})
      for (const MicroBatch& micro : *micros) memory_.pass.prepare(stream_, models, micro, part);
  if (config_.algorithm.rollout_is_batch_normalize)
    if (auto known = normalize_importance(report); !known) return known.error();
  if (!config_.algorithm.use_kl_in_reward) return {};
  std::vector<float> penalties = memory_.pass.kl_penalties();
  std::vector<double> summed(penalties.begin(), penalties.end());  // one rank has each, others 0
  double unused = 0;
  if (auto reduced = gang_.reduce(summed, unused); !reduced) return reduced.error();
  std::copy(summed.begin(), summed.end(), penalties.begin());
  advantages = compute_advantages(config_.algorithm, config_.batch, batch, penalties);
  double sum = 0;
  for (const double penalty : summed) sum += penalty;
  report.reward_kl_penalty = sum / static_cast<double>(advantages.tokens);
  return {};
}

// The mean is over all ranks' tokens, or completions, that count; all of them were kept.
Result<void> NativeTrainer::normalize_importance(messages::StepReport& report) {
  const Objective::KeptImportance& own = memory_.pass.objective().kept_importance();
  std::array<double, 2> sums{own.sum, own.count};
  double unused = 0;
  if (auto reduced = gang_.reduce(sums, unused); !reduced) return reduced.error();
  const double mean = sums[0] / std::max(sums[1], 1.0);
  // The bound is verl's. A NaN stays 1 as well: the loss has it anyway.
  const double divisor = mean > kImportanceMeanMin ? mean : 1.0;
  memory_.pass.normalize_importance(divisor);
  if (sums[1] > 0) report.rollout_is_batch_norm_factor = divisor;
  return {};
}

// One optimizer step; returns the norm of its gradient.
Result<double> NativeTrainer::update(const MiniBatch& mini, const ShardedUpdate::Step& step) {
  const double loss_before = memory_.pass.objective().sums().loss;
  const LossPass::Hooks hooks = begin_gradients();
  const LossPass::Models models{weights_.policy(), weights_.reference()};
  for (const MicroBatch& micro : mini.learning)
    memory_.pass.add(stream_, models, micro, memory_.gradients,
                     hooks_of(micro, mini.learning, hooks));
  if (mini.learning.empty()) take_no_part(hooks, memory_.gradients);
  for (const MicroBatch& micro : mini.observed) memory_.pass.observe(stream_, models, micro);
  enter("commit");
  const Result<double> norm = apply_gradients(step);
  if (!norm) return norm;
  memory_.pass.updated();
  const double own_loss = memory_.pass.objective().sums().loss - loss_before;
  auto counted = count_step({"step", step_.value + 1, gang_.rank(), *norm, own_loss},
                            config_.nonfinite_steps_max, skipped_);
  if (!counted) return counted.error();
  return norm;
}

Result<messages::StepReport> NativeTrainer::train_share(const TrainBatch& batch,
                                                        BatchAdvantages& advantages) {
  const AlgorithmConfig& algorithm = config_.algorithm;
  // The mean of the batch's importance weights is exact, so that OG-1 holds.
  const bool all = memory_.pass.watched() || algorithm.rollout_is_batch_normalize;
  const double observes = all ? 1.0 : config_.observe_fraction;
  const ObservedGroups observed = choose_observed(batch, advantages, observes, config_.seed);
  const auto plan = plan_batch(batch, {advantages.learns, observed.chosen}, config_,
                               {gang_.rank(), gang_.ranks(), stream_.device});
  if (!plan) return plan.error();
  const std::size_t updates = plan->size() * static_cast<std::size_t>(config_.batch.epochs);
  memory_.pass.begin(batch, advantages);
  messages::StepReport report;
  if (memory_.pass.needs_preparation(updates)) {
    if (auto prepared = prepare(batch, *plan, advantages, report); !prepared)
      return prepared.error();
  }
  report.lr = learning_rate(config_.optimizer, step_.value, config_.steps_total);
  for (std::int64_t epoch = 0; epoch < config_.batch.epochs; ++epoch) {
    for (std::size_t i = 0; i < plan->size(); ++i) {
      if (epoch > 0 || i > 0) enter("train");  // the update before has ended in "commit"
      const bool teaches = advantages.teaches[i];
      const Result<double> norm = update((*plan)[i], {config_.optimizer, report.lr, teaches});
      if (!norm) return norm.error();
      report.grad_norm += *norm / static_cast<double>(updates);
      report.updates_without_gradient += teaches ? 0 : 1;
    }
  }
  beat();
  // Only rank 0 publishes; the others begin the next forward while weights are on their way.
  if (gang_.rank() == 0)
    if (auto published = publish(); !published) return published.error();
  beat();
  report.skipped_in_row = skipped_.in_row;
  report.steps_skipped = skipped_.total;
  auto reported =
      report_objective(gang_, {algorithm, memory_.pass.objective(), observed, updates}, report);
  if (!reported) return reported.error();
  return report;
}

Result<TrainedStep> NativeTrainer::train(const TrainBatch& batch) {
  CHECK(batch.step == step_);
  const auto sound = check_batch(batch, model_.vocab_size, config_.positions_max);
  if (!sound) return sound.error();
  // A learner with one rank is in "train" already; its actor says so.
  if (gang_.ranks() > 1) enter("train");
  if (gang_.rank() == 0 && gang_.ranks() > 1)
    if (auto told = gang_.command(GangCommand::kTrain, wire::encode(batch)); !told)
      return told.error();
  keep_older();
  BatchAdvantages advantages = compute_advantages(config_.algorithm, config_.batch, batch);
  Result<messages::StepReport> report = train_share(batch, advantages);
  if (!report) return report.error();
  report->tokens_trained = advantages.tokens;
  report->groups_zero_variance = advantages.zero_variance;
  report->advantages = std::move(advantages.advantage);
  step_ = StepId{step_.value + 1};
  const std::uint64_t checksum = gang_.rank() == 0 ? checksum64(weights()) : 0;
  return TrainedStep{.report = *std::move(report), .checksum = checksum};
}

// Keeps a copy although the publisher has these versions too: which of them the publisher still has
// depends on timing and on deaths of readers, and a checkpoint must not depend on either.
void NativeTrainer::keep_older() {
  if (config_.older_versions == 0 || gang_.rank() > 0) return;
  std::vector<std::byte> bytes;
  if (std::ssize(older_) == config_.older_versions) {
    bytes = std::move(older_.front());
    older_.pop_front();
  }
  bytes.assign(weights().begin(), weights().end());
  older_.push_back(std::move(bytes));
}

std::optional<std::span<const std::byte>> NativeTrainer::older(PolicyVersion version) const {
  const std::int64_t index = version.value - (step_.value - std::ssize(older_));
  if (index < 0 || index >= std::ssize(older_)) return std::nullopt;
  return older_[static_cast<std::size_t>(index)];
}

Result<void> NativeTrainer::follow() {
  CHECK(gang_.rank() > 0);
  for (;;) {
    Result<Gang::Received> received = gang_.await_command();
    if (!received) return received.error();
    beat();
    switch (received->command) {
      case GangCommand::kStop:
        return publish();
      case GangCommand::kRestore:
        if (auto done = restore(); !done) return done.error();
        break;
      case GangCommand::kWarmStart:
        if (auto done = warm_start(); !done) return done.error();
        break;
      case GangCommand::kSave:
        CHECK(sharded_);
        if (auto sent = fetch_moments(nullptr); !sent) return sent.error();
        break;
      case GangCommand::kTrain: {
        const auto batch = wire::decode<TrainBatch>(
            received->content,
            {.message_bytes_max = kCommandBytesMax, .decoded_bytes_max = kCommandBytesMax});
        if (!batch) return batch.error();
        if (auto done = train(*batch); !done) return done.error();
        break;
      }
    }
  }
}

// Other ranks may still wait for weights from this one, so all are sent before this rank stops.
Result<void> NativeTrainer::stop_gang() {
  if (auto settled = settle_weights(); !settled) return settled;
  return gang_.command(GangCommand::kStop, {});
}

}  // namespace tandem::learner
