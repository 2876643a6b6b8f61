// Every rank runs the same functions in the same order: rank 0 because the learner actor calls
// them, the others from follow(). The order matters, because each function that sums or agrees over
// the gang waits for all ranks. With shards weights may still be on their way when a step ends, so
// whoever needs all of them calls settle_weights() first.
#include "actors/learner/native_trainer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "actors/learner/advantage.h"
#include "actors/learner/batch_plan.h"
#include "actors/learner/gang.h"
#include "actors/learner/lr_schedule.h"
#include "actors/learner/packing.h"
#include "actors/learner/sharded_update.h"
#include "actors/learner/skipped_steps.h"
#include "actors/learner/step_report.h"
#include "actors/learner/trainer_arenas.h"
#include "actors/learner/trainer_checkpoint.h"
#include "actors/learner/trainer_memory.h"
#include "actors/model/parameters.h"
#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/device/queue.h"
#include "runtime/wire/codec.h"

namespace tandem::actors {
namespace {

Error invalid(std::string message, std::string where = {}, std::string help = {}) {
  return {.code = ErrorCode::kInvalid,
          .message = std::move(message),
          .where = std::move(where),
          .help = std::move(help)};
}

// One micro-batch's hooks: the first one of a step asks for weights, the last one ends gradients.
LossPass::Hooks hooks_of(const MicroBatch& batch, const std::vector<MicroBatch>& all,
                         const LossPass::Hooks& hooks) {
  return {.needed = &batch == &all.front() ? hooks.needed : nullptr,
          .finished = &batch == &all.back() ? hooks.finished : nullptr};
}

// Calls the hooks once for a rank without a micro-batch, whose part in the exchange is still
// needed.
void take_no_part(const LossPass::Hooks& hooks, const runtime::Arena& gradients) {
  if (hooks.needed) hooks.needed(gradients.flat().elements());
  if (hooks.finished) hooks.finished(0);
}

}  // namespace

class NativeTrainer::Impl {
 public:
  Impl(NativeTrainerSetup setup, TrainerArenas arenas);

  Result<std::optional<StepId>> restore();
  Result<WarmStartSlice> warm_start();
  Result<TrainedStep> train(const TrainBatch& batch);
  std::optional<std::span<const std::byte>> older(PolicyVersion version) const;
  Result<SavedCheckpoint> save();
  Result<void> follow();
  Result<void> stop_gang();

  // The whole arena that is published: that of the last step of RL, or of the start of RL.
  std::span<const std::byte> published() const { return weights_.published(); }

  Gang gang;
  StepId step{};

 private:
  Result<void> load(const std::filesystem::path& directory, const TrainerState& state);
  Result<void> load_master(const std::filesystem::path& directory, const TrainerState& state);
  bool holds_other_dtype(const std::filesystem::path& directory, const TrainerState& state) const;
  Result<void> load_older(const std::filesystem::path& directory, const TrainerState& state);
  void keep_older();
  Result<double> prepare(const TrainBatch& batch, const std::vector<MiniBatch>& plan,
                         BatchAdvantages& advantages);
  Result<double> update(const MiniBatch& mini, double lr);
  Result<StepReport> train_share(const TrainBatch& batch, BatchAdvantages& advantages);
  Result<double> warm_start_step();
  struct Measured {
    double sample_accuracy, loss;
  };
  Result<Measured> measure_held_out();
  LossPass::Hooks begin_gradients();
  Result<void> settle_weights();
  Result<void> publish();
  Result<double> apply_gradients(const OptimizerConfig& config, double lr);
  Result<double> apply_whole(const OptimizerConfig& config, double lr);
  Result<void> fetch_moments(const Optimizer::HostMoments* to);
  Result<void> load_moments(const std::filesystem::path& directory, const TrainerState& state);
  void start_rl();
  void beat() const {
    if (beat_) beat_();
  }

  const TrainerConfig config_;
  const std::unique_ptr<runtime::ThreadPool> threads_;
  const std::function<void()> beat_;
  const ModelConfig model_;
  const std::filesystem::path model_directory_;
  TrainerArenas memory_;
  TrainerWeights& weights_;
  // Declared behind the memory that its work uses and the threads, so that it ends before them.
  const runtime::Queue queue_;
  const runtime::Stream stream_;
  // Declared behind the memory that it moves and the queue that it waits for, for the same reason.
  std::optional<ShardedUpdate> sharded_;
  std::optional<WarmStartData> warm_start_data_;
  std::int64_t warm_start_steps_ = 0;
  SkippedSteps skipped_;
  bool untrained_ = true;                     // no step has changed the given weights
  std::deque<std::vector<std::byte>> older_;  // versions step - size … step - 1; of rank 0 alone
};

NativeTrainer::Impl::Impl(NativeTrainerSetup setup, TrainerArenas arenas)
    : gang(std::move(setup.gang), setup.config.collective_timeout),
      config_(std::move(setup.config)),
      threads_(std::move(setup.threads)),
      beat_(std::move(setup.beat)),
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
void NativeTrainer::Impl::start_rl() {
  step = {};
  older_.clear();
  memory_.optimizer.reset(stream_);
  weights_.restart(stream_);
}

Result<void> NativeTrainer::Impl::load(const std::filesystem::path& directory,
                                       const TrainerState& state) {
  Result<ModelInfo> info = load_model_info(directory);
  if (!info) return Error{.message = info.error().message, .where = info.error().where};
  const auto refuse = [&](const char* why) { return invalid(why, directory.string()); };
  info->config.dtype = model_.dtype;  // the files are f32 master weights, fit for any dtype
  if (!(info->config == model_)) return refuse("it is of another model");
  if (holds_other_dtype(directory, state))
    return refuse("its reference or older versions were published in another model.dtype");
  if (state.seed != config_.seed) return refuse("it is of a job with another seed");
  if (weights_.reference() != nullptr && state.reference_checksum == 0)
    return refuse("it has no reference weights, which use_kl_loss and use_kl_in_reward need");
  if (auto read = load_master(directory, state); !read) return read;
  if (auto read = load_moments(directory, state); !read) return read;
  if (weights_.reference() != nullptr) {
    auto read =
        read_array(reference_file(directory), state.reference_checksum, weights_.reference_bytes());
    if (!read) return read;
    weights_.install_reference(stream_);
  }
  if (auto read = load_older(directory, state); !read) return read;
  memory_.optimizer.set_steps(state.optimizer_steps);
  skipped_ = state.skipped;
  weights_.loaded(stream_);
  return {};
}

// Loads into the existing weights: a second model would not fit beside a large one.
Result<void> NativeTrainer::Impl::load_master(const std::filesystem::path& directory,
                                              const TrainerState& state) {
  const runtime::Arena& weights = weights_.begin_load();
  const auto read = load_weights(directory, {model_, weights, threads_.get()});
  if (!read) return Error{.message = read.error().message, .where = read.error().where};
  if (checksum64(weights.bytes()) == state.weights_checksum) return {};
  return Error{.message = "its weights do not have the checksum they were written with",
               .where = directory.string()};
}

// Reference and older versions are stored as published, in the dtype of the job that wrote them.
bool NativeTrainer::Impl::holds_other_dtype(const std::filesystem::path& directory,
                                            const TrainerState& state) const {
  ModelConfig other = model_;
  other.dtype = other.dtype == runtime::DType::kF32 ? runtime::DType::kBF16 : runtime::DType::kF32;
  const PolicyVersion newest{state.step.value - 1};
  for (const auto& file : {reference_file(directory), older_file(directory, newest)}) {
    std::error_code none;
    if (std::filesystem::file_size(file, none) == published_manifest(other).bytes_total)
      return true;
  }
  return false;
}

Result<void> NativeTrainer::Impl::load_moments(const std::filesystem::path& directory,
                                               const TrainerState& state) {
  const auto moments = memory_.optimizer.host_moments();
  if (!moments) return moments.error();
  if (auto read = read_array(m_file(directory), state.m_checksum, moments->m); !read) return read;
  if (auto read = read_array(v_file(directory), state.v_checksum, moments->v); !read) return read;
  memory_.optimizer.put(stream_, *moments);
  return {};
}

// Ranks other than 0 read the older versions too: all must agree on which checkpoint is whole.
Result<void> NativeTrainer::Impl::load_older(const std::filesystem::path& directory,
                                             const TrainerState& state) {
  older_.clear();
  const std::int64_t held = std::ssize(state.older_checksums);
  const std::int64_t wanted = std::min(config_.older_versions, state.step.value);
  if (held < wanted)
    return invalid("it holds " + std::to_string(held) + " older versions of the weights, not the " +
                       std::to_string(wanted) + " that the job's fixed lag needs",
                   directory.string());
  for (std::int64_t back = wanted; back > 0; --back) {
    const PolicyVersion version{state.step.value - back};
    std::vector<std::byte> bytes(published().size());
    const std::uint64_t checksum = state.older_checksums[static_cast<std::size_t>(held - back)];
    if (auto read = read_array(older_file(directory, version), checksum, bytes); !read) return read;
    if (gang.rank() == 0) older_.push_back(std::move(bytes));
  }
  return {};
}

Result<std::optional<StepId>> NativeTrainer::Impl::restore() {
  if (gang.rank() == 0)
    if (auto told = gang.command(GangCommand::kRestore, {}); !told) return told.error();
  if (auto settled = settle_weights(); !settled) return settled.error();
  const auto state = read_checkpoint(
      config_.checkpoints, [this](const std::filesystem::path& directory, const TrainerState& s) {
        return load(directory, s);
      });
  if (!state) return state.error();
  std::optional<StepId> restored;
  if (*state) {
    restored = step = (*state)->step;
    untrained_ = false;
  } else if (untrained_) {
    start_rl();  // a damaged checkpoint may have left its moments behind
  } else {
    return Error{.message = "there is no checkpoint to go back to: the learner has to start again"};
  }
  const std::string mine = (restored ? std::to_string(restored->value) : "none") + " " +
                           std::to_string(checksum64(weights_.host().bytes()));
  if (auto same = gang.agree(mine, "the weights to start from"); !same) return same.error();
  return restored;
}

// Zeroes the gradients, to which micro-batches add. Without shards the hooks returned are empty.
// With shards they wait for weights of the last step, and start the sums of finished gradients.
LossPass::Hooks NativeTrainer::Impl::begin_gradients() {
  const runtime::Arena& all = memory_.gradients;
  runtime::zero(stream_, all.flat().data, all.manifest().bytes_total);
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
Result<void> NativeTrainer::Impl::settle_weights() {
  if (sharded_)
    if (auto settled = sharded_->settle(); !settled) return settled;
  weights_.follow_master(stream_);
  return {};
}

Result<void> NativeTrainer::Impl::publish() {
  if (auto settled = settle_weights(); !settled) return settled;
  weights_.publish(stream_);
  return {};
}

// The update without shards: every rank sums all gradients and updates all weights.
Result<double> NativeTrainer::Impl::apply_whole(const OptimizerConfig& config, double lr) {
  if (gang.ranks() > 1)
    if (auto summed = gang.sum(memory_.gradients.f32()); !summed) return summed.error();
  const double squares = memory_.optimizer.squares(stream_, memory_.gradients);
  const double norm = memory_.optimizer.begin_step(config, lr, squares);
  if (std::isfinite(norm))
    memory_.optimizer.update(stream_, 0, weights_.master(), memory_.gradients);
  return norm;
}

// Sums the ranks' gradients, takes a step and returns the norm. If the norm is not finite, which
// all ranks see alike, no weight has changed (SK-1, NT-4). With shards the policy follows the new
// weights in the next forward or in settle_weights().
Result<double> NativeTrainer::Impl::apply_gradients(const OptimizerConfig& config, double lr) {
  const Result<double> norm =
      sharded_ ? sharded_->apply(stream_, gang, memory_.optimizer, {.config = config, .lr = lr},
                                 weights_.master(), memory_.gradients)
               : apply_whole(config, lr);
  if (!norm) return norm;
  untrained_ = false;
  if (!std::isfinite(*norm)) return norm;
  weights_.master_changed();
  if (!sharded_) weights_.follow_master(stream_);
  return norm;
}

Result<double> NativeTrainer::Impl::warm_start_step() {
  const WarmStartConfig& warm = *config_.warm_start;
  const std::vector<const WarmStartRecord*> records =
      warm_start_data_->batch(warm_start_steps_, warm.batch_size);
  std::int64_t tokens = 0;
  for (const WarmStartRecord* record : records) tokens += std::ssize(record->completion);
  const auto batches =
      pack(groups_of_rank(records, gang.rank(), gang.ranks()), config_.rows_max, stream_.device);
  if (!batches) return batches.error();
  const LossPass::Hooks hooks = begin_gradients();
  double loss = 0;
  for (const MicroBatch& batch : *batches)
    loss += memory_.pass.add_supervised(stream_, weights_.policy(), batch, tokens,
                                        memory_.gradients, hooks_of(batch, *batches, hooks));
  if (batches->empty()) take_no_part(hooks, memory_.gradients);
  const OptimizerConfig optimizer = warm_start_optimizer(warm);
  const auto norm =
      apply_gradients(optimizer, learning_rate(optimizer, warm_start_steps_, warm.max_steps));
  if (!norm) return norm.error();
  auto counted = count_step({"warm-start step", warm_start_steps_ + 1, gang.rank(), *norm, loss},
                            config_.nonfinite_steps_max, skipped_);
  if (!counted) return counted.error();
  double unused = 0;
  if (auto summed = gang.reduce(std::span(&loss, 1), unused); !summed) return summed.error();
  ++warm_start_steps_;
  return loss / static_cast<double>(tokens);
}

// A completion is sampled with probability exp(sum of its log-probabilities), so the expected share
// of samples that are right needs no sampling and has no noise.
Result<NativeTrainer::Impl::Measured> NativeTrainer::Impl::measure_held_out() {
  if (auto settled = settle_weights(); !settled) return settled.error();
  const std::span<const WarmStartRecord* const> all = warm_start_data_->held_out();
  const auto batches =
      pack(groups_of_rank(all, gang.rank(), gang.ranks()), config_.rows_max, stream_.device);
  if (!batches) return batches.error();
  std::array<double, 3> sums{};  // probability, -log p, tokens
  for (const MicroBatch& batch : *batches) {
    const LossPass::Score score = memory_.pass.score(stream_, weights_.policy(), batch);
    sums[0] += score.probability;
    sums[1] += score.minus_log_prob;
    sums[2] += score.tokens;
  }
  double unused = 0;
  if (auto summed = gang.reduce(sums, unused); !summed) return summed.error();
  return Measured{sums[0] / static_cast<double>(all.size()), sums[1] / sums[2]};
}

Result<WarmStartSlice> NativeTrainer::Impl::warm_start() {
  if (!config_.warm_start) {
    start_rl();
    return WarmStartSlice{.done = true};
  }
  if (gang.rank() == 0)
    if (auto told = gang.command(GangCommand::kWarmStart, {}); !told) return told.error();
  const WarmStartConfig& warm = *config_.warm_start;
  const Result<double> loss = warm_start_step();
  if (!loss) return loss.error();
  WarmStartSlice slice{.step = static_cast<std::int32_t>(warm_start_steps_),
                       .steps_max = static_cast<std::int32_t>(warm.max_steps),
                       .loss = *loss,
                       .steps_skipped = skipped_.total};
  const bool last = warm_start_steps_ >= warm.max_steps;
  slice.done = last;
  slice.reached = !warm.until;
  if (warm.until && (last || warm_start_steps_ % warm.eval_freq == 0)) {
    const Result<Measured> measured = measure_held_out();
    if (!measured) return measured.error();
    const bool by_loss = warm.until->metric == WarmStartMetric::kLoss;
    slice.metric = by_loss ? measured->loss : measured->sample_accuracy;
    slice.reached =
        by_loss ? *slice.metric <= warm.until->value : *slice.metric >= warm.until->value;
    slice.done = last || slice.reached;
  }
  if (!slice.done) return slice;
  if (auto settled = settle_weights(); !settled) return settled.error();
  start_rl();
  return slice;
}

// Computes everything that needs the weights before the first update: the log-probabilities to
// keep, and with them the KL penalties. Returns the mean penalty of the batch's completion tokens.
Result<double> NativeTrainer::Impl::prepare(const TrainBatch& batch,
                                            const std::vector<MiniBatch>& plan,
                                            BatchAdvantages& advantages) {
  if (auto settled = settle_weights(); !settled) return settled.error();
  const LossPass::Models models{weights_.policy(), weights_.reference()};
  for (const MiniBatch& mini : plan)
    for (const auto* micros : {&mini.learning, &mini.observed})
      for (const MicroBatch& micro : *micros) memory_.pass.prepare(stream_, models, micro);
  if (!config_.algorithm.use_kl_in_reward) return 0.0;
  std::vector<float> penalties = memory_.pass.kl_penalties();
  std::vector<double> summed(penalties.begin(), penalties.end());  // one rank has each, others 0
  double unused = 0;
  if (auto reduced = gang.reduce(summed, unused); !reduced) return reduced.error();
  std::copy(summed.begin(), summed.end(), penalties.begin());
  advantages = compute_advantages(config_.algorithm, config_.batch, batch, penalties);
  double sum = 0;
  for (const double penalty : summed) sum += penalty;
  return sum / static_cast<double>(advantages.tokens);
}

// One optimizer step; returns the norm of its gradient.
Result<double> NativeTrainer::Impl::update(const MiniBatch& mini, double lr) {
  const double loss_before = memory_.pass.objective().sums().loss;
  const LossPass::Hooks hooks = begin_gradients();
  const LossPass::Models models{weights_.policy(), weights_.reference()};
  for (const MicroBatch& micro : mini.learning)
    memory_.pass.add(stream_, models, micro, memory_.gradients,
                     hooks_of(micro, mini.learning, hooks));
  if (mini.learning.empty()) take_no_part(hooks, memory_.gradients);
  for (const MicroBatch& micro : mini.observed) memory_.pass.observe(stream_, models, micro);
  const Result<double> norm = apply_gradients(config_.optimizer, lr);
  if (!norm) return norm;
  memory_.pass.updated();
  const double own_loss = memory_.pass.objective().sums().loss - loss_before;
  auto counted = count_step({"step", step.value + 1, gang.rank(), *norm, own_loss},
                            config_.nonfinite_steps_max, skipped_);
  if (!counted) return counted.error();
  return norm;
}

Result<StepReport> NativeTrainer::Impl::train_share(const TrainBatch& batch,
                                                    BatchAdvantages& advantages) {
  const AlgorithmConfig& algorithm = config_.algorithm;
  const auto plan =
      plan_batch(batch, advantages.learns, config_, {gang.rank(), gang.ranks(), stream_.device});
  if (!plan) return plan.error();
  const std::size_t updates = plan->size() * static_cast<std::size_t>(config_.batch.epochs);
  memory_.pass.begin(batch, advantages);
  StepReport report;
  if (memory_.pass.needs_preparation(updates)) {
    const Result<double> penalty = prepare(batch, *plan, advantages);
    if (!penalty) return penalty.error();
    if (algorithm.use_kl_in_reward) report.reward_kl_penalty = *penalty;
  }
  report.lr = learning_rate(config_.optimizer, step.value, config_.steps_total);
  for (std::int64_t epoch = 0; epoch < config_.batch.epochs; ++epoch) {
    for (const MiniBatch& mini : *plan) {
      const Result<double> norm = update(mini, report.lr);
      if (!norm) return norm.error();
      report.grad_norm += *norm / static_cast<double>(updates);
    }
  }
  // Only rank 0 publishes; the others begin the next forward while weights are on their way.
  if (gang.rank() == 0)
    if (auto published = publish(); !published) return published.error();
  report.skipped_in_row = skipped_.in_row;
  report.steps_skipped = skipped_.total;
  auto reported = report_objective(gang, algorithm, memory_.pass.objective(), updates, report);
  if (!reported) return reported.error();
  return report;
}

Result<TrainedStep> NativeTrainer::Impl::train(const TrainBatch& batch) {
  CHECK(batch.step == step);
  const auto sound = check_batch(batch, model_.vocab_size, config_.positions_max);
  if (!sound) return sound.error();
  if (gang.rank() == 0 && gang.ranks() > 1)
    if (auto told = gang.command(GangCommand::kTrain, runtime::encode(batch)); !told)
      return told.error();
  keep_older();
  BatchAdvantages advantages = compute_advantages(config_.algorithm, config_.batch, batch);
  Result<StepReport> report = train_share(batch, advantages);
  if (!report) return report.error();
  report->tokens_trained = advantages.tokens;
  report->groups_zero_variance = advantages.zero_variance;
  report->advantages = std::move(advantages.advantage);
  step = StepId{step.value + 1};
  const std::uint64_t checksum = gang.rank() == 0 ? checksum64(published()) : 0;
  return TrainedStep{.report = *std::move(report), .checksum = checksum};
}

// Keeps a copy although the publisher has these versions too: which of them the publisher still has
// depends on timing and on deaths of readers, and a checkpoint must not depend on either.
void NativeTrainer::Impl::keep_older() {
  if (config_.older_versions == 0 || gang.rank() > 0) return;
  std::vector<std::byte> bytes;
  if (std::ssize(older_) == config_.older_versions) {
    bytes = std::move(older_.front());
    older_.pop_front();
  }
  bytes.assign(published().begin(), published().end());
  older_.push_back(std::move(bytes));
}

std::optional<std::span<const std::byte>> NativeTrainer::Impl::older(PolicyVersion version) const {
  const std::int64_t index = version.value - (step.value - std::ssize(older_));
  if (index < 0 || index >= std::ssize(older_)) return std::nullopt;
  return older_[static_cast<std::size_t>(index)];
}

// `to` is null on the ranks that do not write the checkpoint.
Result<void> NativeTrainer::Impl::fetch_moments(const Optimizer::HostMoments* to) {
  if (auto settled = settle_weights(); !settled) return settled;
  if (sharded_) return sharded_->gather_moments(stream_, memory_.optimizer, memory_.gradients, to);
  memory_.optimizer.fetch(stream_, *to);
  return {};
}

Result<SavedCheckpoint> NativeTrainer::Impl::save() {
  const auto moments = memory_.optimizer.host_moments();
  if (!moments) return moments.error();
  if (sharded_)
    if (auto told = gang.command(GangCommand::kSave, {}); !told) return told.error();
  if (auto fetched = fetch_moments(&*moments); !fetched) return fetched.error();
  const runtime::Arena& host = weights_.fetch(stream_);
  CheckpointContent content{.state = {.step = step,
                                      .optimizer_steps = memory_.optimizer.steps(),
                                      .seed = config_.seed,
                                      .skipped = skipped_},
                            .weights = host.bytes(),
                            .m = moments->m,
                            .v = moments->v,
                            .reference = weights_.reference_bytes(),
                            .older = {older_.begin(), older_.end()},
                            .save_model = [&](const std::filesystem::path& directory) {
                              return save_model(directory, {model_, host, model_directory_});
                            }};
  const auto path = write_checkpoint(config_.checkpoints, std::move(content));
  if (!path) return path.error();
  return SavedCheckpoint{step, path->string(), weights_.host_sha256()};
}

Result<void> NativeTrainer::Impl::follow() {
  CHECK(gang.rank() > 0);
  for (;;) {
    Result<Gang::Received> received = gang.await_command();
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
        const auto batch = runtime::decode<TrainBatch>(
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
Result<void> NativeTrainer::Impl::stop_gang() {
  if (auto settled = settle_weights(); !settled) return settled;
  return gang.command(GangCommand::kStop, {});
}

Result<std::unique_ptr<NativeTrainer>> NativeTrainer::make(NativeTrainerSetup setup) {
  if (auto sound = check_setup(setup); !sound) return sound.error();
  if (setup.device == runtime::DeviceKind::kCuda) {
    const runtime::MemoryInfo gpu = runtime::memory_info(setup.device);
    const int sharing = setup.shards ? setup.shards->size() : 1;
    auto room = check_trainer_memory(
        trainer_memory(setup.model.config, setup.config, setup.device, sharing), gpu.free_bytes,
        gpu.total_bytes, setup.config);
    if (!room) return room.error();
  }
  Result<TrainerArenas> arenas = allocate_arenas(setup);
  if (!arenas) return arenas.error();
  return std::unique_ptr<NativeTrainer>(
      new NativeTrainer(std::make_unique<Impl>(std::move(setup), *std::move(arenas))));
}

NativeTrainer::NativeTrainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NativeTrainer::~NativeTrainer() = default;

Result<std::optional<StepId>> NativeTrainer::restore() { return impl_->restore(); }
StepId NativeTrainer::step() const { return impl_->step; }
std::span<const std::byte> NativeTrainer::weights() const { return impl_->published(); }
Result<WarmStartSlice> NativeTrainer::warm_start() { return impl_->warm_start(); }
Result<TrainedStep> NativeTrainer::train(const TrainBatch& batch) { return impl_->train(batch); }
std::optional<std::span<const std::byte>> NativeTrainer::older(PolicyVersion version) const {
  return impl_->older(version);
}
Result<SavedCheckpoint> NativeTrainer::save() { return impl_->save(); }
Result<void> NativeTrainer::follow() { return impl_->follow(); }
Result<void> NativeTrainer::stop_gang() { return impl_->stop_gang(); }

}  // namespace tandem::actors
