// Field by field, without decisions of its own: a value that several keys decide is computed by a
// function that others can call too (lookahead(), budget_of()). Enums of the job file have the
// order of the role's enums and are cast; the static_asserts in this file check most of these
// orders.
//
// Random streams of a job are derived from its one seed by name ("rollout", "data", "evaluation"),
// so that a draw in one of them changes no other. The number of published versions is counted here
// alone (weights_family), since publisher, subscribers and memory plan must agree on it.
#include "actors/main/role_config.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "actors/main/job/print_job.h"
#include "runtime/base/rng.h"

namespace tandem::cli {

namespace {

actors::VerifierType verifier_type(RewardType type) {
  switch (type) {
    case RewardType::kExact:
      return actors::VerifierType::kExact;
    case RewardType::kMath:
      return actors::VerifierType::kMath;
    case RewardType::kRegex:
      return actors::VerifierType::kRegex;
    case RewardType::kCommand:
      return actors::VerifierType::kCommand;
  }
  return actors::VerifierType::kExact;
}

// Whether a version may arrive in memory of the rollout's GPU.
bool arrives_on_device(const JobSpec& job) {
  return job.weight_broadcast.type == BroadcastType::kCudaIpc ||
         (job.weight_broadcast.type == BroadcastType::kNccl &&
          job.pools.rollout.gpus_per_actor > 0);
}

}  // namespace

runtime::DType dtype_of(const ModelSpec& model) {
  return model.dtype == ModelDtype::kBfloat16 ? runtime::DType::kBF16 : runtime::DType::kF32;
}

kernels::Rows products_of(const ModelSpec& model) {
  return model.batch_invariant ? kernels::Rows::kInvariant : kernels::Rows::kFastest;
}

scheduler::Budget budget_of(const JobSpec& job) {
  return {.max_staleness = job.async.max_staleness,
          .lookahead = lookahead(job.async),
          .sync_steps = job.async.trigger_parameter_sync_step,
          .groups_per_step = job.data.train_batch_size,
          .steps_total = job.learner.total_training_steps};
}

actors::EngineConfig engine_config(const JobSpec& job, std::uint64_t machine_memory_bytes) {
  const RolloutSpec& r = job.rollout;
  actors::EngineConfig config{
      .temperature = static_cast<float>(r.temperature),
      .top_p = static_cast<float>(r.top_p),
      .top_k = static_cast<std::int32_t>(r.top_k),
      .min_p = static_cast<float>(r.min_p),
      .min_tokens = static_cast<std::int32_t>(r.min_tokens),
      .stop = r.stop,
      .stop_token_ids = {r.stop_token_ids.begin(), r.stop_token_ids.end()},
      .max_prompt_length = static_cast<std::int32_t>(job.data.max_prompt_length),
      .max_response_length = static_cast<std::int32_t>(job.data.max_response_length),
      .max_num_seqs = static_cast<std::int32_t>(r.max_num_seqs),
      .max_num_batched_tokens = static_cast<std::int32_t>(r.max_num_batched_tokens),
      .block_size = static_cast<std::int32_t>(r.block_size),
      .enable_prefix_caching = r.enable_prefix_caching,
      .partial_rollout = job.async.partial_rollout,
      .kv_on_update = job.async.kv_on_update == KvOnUpdate::kKeep ? actors::KvOnUpdate::kKeep
                                                                  : actors::KvOnUpdate::kRecompute,
      .cudagraph_capture_sizes = {r.cudagraph_capture_sizes.begin(),
                                  r.cudagraph_capture_sizes.end()},
      .async_scheduling = r.async_scheduling && job.pools.rollout.gpus_per_actor > 0,
      .products = products_of(job.model),
      .weights_arrive_on_device = arrives_on_device(job)};
  // The share of the memory is for all rollouts of the job together and is split evenly, as if all
  // ran on this machine.
  const double share = r.gpu_memory_utilization * static_cast<double>(machine_memory_bytes) /
                       static_cast<double>(std::max<std::int64_t>(r.replicas, 1));
  config.kv_memory_bytes = static_cast<std::size_t>(share);
  return config;
}

actors::TrainerConfig trainer_config(const JobSpec& job, const RunPlace& run, bool resume) {
  const AlgorithmSpec& a = job.algorithm;
  const OptimizerSpec& o = job.learner.optimizer;
  actors::TrainerConfig config{.seed = static_cast<std::uint64_t>(job.seed)};
  if (job.weight_broadcast.type == BroadcastType::kCudaIpc)
    // Published versions lie in the learner's GPU memory, in as many slots as the family has.
    config.versions_on_device = weights_family(job, run).slots;
  config.algorithm.estimator = static_cast<actors::AdvantageEstimator>(a.adv_estimator);
  config.algorithm.norm_adv_by_std_in_grpo = a.norm_adv_by_std_in_grpo;
  config.algorithm.loss_mode = static_cast<kernels::LossMode>(a.loss_mode);
  config.algorithm.loss_aggregation = static_cast<actors::LossAggregation>(a.loss_agg_mode);
  config.algorithm.clip_ratio_low = a.clip_ratio_low;
  config.algorithm.clip_ratio_high = a.clip_ratio_high;
  config.algorithm.clip_ratio_c = a.clip_ratio_c;
  config.algorithm.bypass_mode = a.bypass_mode;
  if (a.rollout_is)
    config.algorithm.rollout_is = *a.rollout_is == RolloutIs::kToken
                                      ? kernels::ImportanceLevel::kToken
                                      : kernels::ImportanceLevel::kSequence;
  config.algorithm.rollout_is_threshold = a.rollout_is_threshold;
  config.algorithm.entropy_coeff = a.entropy_coeff;
  config.algorithm.use_kl_loss = a.use_kl_loss;
  config.algorithm.kl_loss_coef = a.kl_loss_coef;
  config.algorithm.use_kl_in_reward = a.use_kl_in_reward;
  config.algorithm.kl_penalty = static_cast<actors::KlPenalty>(a.kl_penalty);
  config.algorithm.kl_in_reward_coef = a.kl_ctrl.kl_coef;
  config.algorithm.mask_truncated_completions = a.mask_truncated_completions;
  config.algorithm.mini_batch_groups = job.learner.ppo_mini_batch_size.value_or(0);
  config.algorithm.epochs = job.learner.ppo_epochs;
  config.algorithm.overlong_buffer = {static_cast<std::int32_t>(a.overlong_buffer.len),
                                      a.overlong_buffer.penalty_factor};
  config.algorithm.response_length_max = static_cast<std::int32_t>(job.data.max_response_length);
  config.algorithm.temperature = static_cast<float>(job.rollout.temperature);
  config.optimizer = {.lr = o.lr,
                      .schedule = static_cast<actors::LrSchedule>(o.lr_scheduler_type),
                      .warmup_steps = o.lr_warmup_steps,
                      .min_lr_ratio = o.min_lr_ratio,
                      .beta1 = o.betas[0],
                      .beta2 = o.betas[1],
                      .eps = o.eps,
                      .weight_decay = o.weight_decay,
                      .grad_clip = o.grad_clip};
  config.steps_total = job.learner.total_training_steps;
  config.rows_max = job.learner.max_token_len;
  config.positions_max = job.data.max_prompt_length + job.data.max_response_length;
  config.enable_gradient_checkpointing = job.learner.enable_gradient_checkpointing;
  config.nonfinite_steps_max = job.learner.max_nonfinite_steps;
  config.products = products_of(job.model);
  if (const auto& warm = job.warm_start) {
    config.warm_start.emplace();
    config.warm_start->lr = warm->lr;
    config.warm_start->batch_size = warm->batch_size;
    config.warm_start->steps_max = warm->max_steps;
    config.warm_start->eval_freq = warm->eval_freq;
    if (warm->until)
      config.warm_start->until = {actors::WarmStartMetric::kSampleAccuracy, warm->until->value};
  }
  config.checkpoints = {
      .directory = run.run_dir + "/checkpoints",
      .keep_max = job.learner.max_ckpt_to_keep,
      .resume = resume ? actors::ResumeMode::kAuto : actors::ResumeMode::kDisable};
  // Under fixed_lag step d is generated by version d - K, so that K older versions must be kept.
  if (job.async.schedule == Schedule::kFixedLag) config.older_versions = job.async.max_staleness;
  return config;
}

// The casts above rely on equal orders; the last enumerator shows most changes.
static_assert(static_cast<int>(AdvEstimator::kReinforcePlusPlus) ==
              static_cast<int>(actors::AdvantageEstimator::kReinforcePlusPlus));
static_assert(static_cast<int>(LossAggMode::kSeqMeanTokenSumNorm) ==
              static_cast<int>(actors::LossAggregation::kSeqMeanTokenSumNorm));
static_assert(static_cast<int>(LossMode::kGspo) == static_cast<int>(kernels::LossMode::kGspo) &&
              static_cast<int>(LossMode::kCispo) == static_cast<int>(kernels::LossMode::kCispo));
static_assert(static_cast<int>(LrScheduler::kLinear) ==
                  static_cast<int>(actors::LrSchedule::kLinear) &&
              static_cast<int>(LrScheduler::kCosine) ==
                  static_cast<int>(actors::LrSchedule::kCosine));

runtime::WeightsConfig weights_family(const JobSpec& job, const RunPlace& run) {
  runtime::WeightsConfig config{.type = runtime::WeightsType::kAuto,
                                .name = runtime::weights_name(run.job, run.run_dir),
                                .directory = run.run_dir + "/weights",
                                .slots = static_cast<int>(job.async.max_staleness) + 2};
  if (job.weight_broadcast.type == BroadcastType::kShm) config.type = runtime::WeightsType::kShm;
  if (job.weight_broadcast.type == BroadcastType::kDisk) config.type = runtime::WeightsType::kDisk;
  if (job.weight_broadcast.type == BroadcastType::kCudaIpc)
    config.type = runtime::WeightsType::kCudaIpc;
  if (job.weight_broadcast.type == BroadcastType::kTcp) config.type = runtime::WeightsType::kTcp;
  if (job.weight_broadcast.type == BroadcastType::kNccl) config.type = runtime::WeightsType::kNccl;
  config.stall_max = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(job.weight_broadcast.timeout_s));
  config.bucket_bytes = static_cast<std::uint64_t>(job.weight_broadcast.bucket_megabytes) << 20;
  return config;
}

runtime::WeightsConfig weights_config(const JobSpec& job, const RunPlace& run,
                                      const runtime::Manifest& manifest) {
  runtime::WeightsConfig config = weights_family(job, run);
  config.layout = runtime::layout_of(manifest);
  return config;
}

actors::VerifierConfig verifier_config(const JobSpec& job, const std::string& log) {
  const RewardLimitsSpec& limits = job.reward.limits;
  const auto bytes = [](const std::optional<std::int64_t>& megabytes) {
    return megabytes ? std::optional(static_cast<std::uint64_t>(*megabytes) << 20) : std::nullopt;
  };
  actors::VerifierConfig config{.type = verifier_type(job.reward.type),
                                .pattern = job.reward.pattern.value_or(""),
                                .timeout = std::chrono::duration_cast<Duration>(
                                    std::chrono::duration<double>(job.reward.timeout_s)),
                                .retries = static_cast<int>(job.reward.retries),
                                .log = log};
  config.program = {.argv = job.reward.command.value_or(std::vector<std::string>{}),
                    .env = job.reward.env,
                    .limits = {.file_bytes = bytes(limits.file_size_megabytes),
                               .cpu_seconds_per_line = limits.cpu_seconds_per_line,
                               .memory_bytes = bytes(limits.memory_megabytes)}};
  if (limits.open_files)
    config.program.limits.open_files = static_cast<std::uint64_t>(*limits.open_files);
  return config;
}

actors::EvaluationPlan evaluation_plan(const JobSpec& job, const std::vector<Record>& records) {
  std::vector<std::optional<std::string>> data_source;
  for (const Record& record : records) data_source.push_back(record.data_source);
  return {.prompts = static_cast<std::int32_t>(records.size()),
          .sampling = {.n = static_cast<std::int32_t>(job.eval.n),
                       .temperature = static_cast<float>(job.eval.temperature),
                       .top_p = static_cast<float>(job.eval.top_p),
                       .top_k = static_cast<std::int32_t>(job.eval.top_k),
                       .greedy = job.eval.greedy},
          .seed = derive_seed(static_cast<std::uint64_t>(job.seed), "evaluation"),
          .sources = actors::sources_of(data_source)};
}

Result<actors::ExchangeConfig> exchange_config(const JobSpec& job, const RunPlace& run,
                                               bool resume) {
  const DatasetKeys keys = dataset_keys(job);
  auto train = load_dataset(job.data.train_files, keys, RecordNeeds::kAnswer);
  if (!train) return train.error();
  std::vector<Record> validation;
  if (!job.data.val_files.empty()) {
    auto loaded = load_dataset(job.data.val_files, keys, RecordNeeds::kAnswer);
    if (!loaded) return loaded.error();
    validation = std::move(*loaded);
  }
  const auto seed = static_cast<std::uint64_t>(job.seed);
  actors::ExchangeConfig config{.job = run.job,
                                .seed = derive_seed(seed, "rollout"),
                                .budget = budget_of(job),
                                .fixed_lag = job.async.schedule == Schedule::kFixedLag,
                                .n = static_cast<std::int32_t>(job.rollout.n),
                                .warm_start = job.warm_start.has_value(),
                                .save_freq = job.learner.save_freq,
                                .test_freq = job.learner.test_freq,
                                .filter_groups = job.algorithm.filter_groups.enable,
                                .gen_batches_max = job.algorithm.filter_groups.max_num_gen_batches,
                                .resume = resume,
                                .job_yaml = print_job(job)};
  if (job.save_on_cancel) config.save_on_cancel = actors::kSaveOnCancelMax;
  if (job.weight_broadcast.type == BroadcastType::kNccl)
    config.broadcasts = scheduler::BroadcastLimits{
        .forming_max = std::chrono::duration_cast<Duration>(
            std::chrono::duration<double>(job.weight_broadcast.timeout_s))};
  for (Record& record : *train)
    config.train.push_back({std::move(record.prompt), std::move(record.json)});
  config.evaluation = evaluation_plan(job, validation);
  for (Record& record : validation)
    config.validation.push_back({std::move(record.prompt), std::move(record.json)});
  // Positions near the border of two epochs may be asked for in any order, so that the orders of
  // two neighbouring epochs are kept.
  struct Order {
    std::int64_t epoch = -1;
    std::vector<std::uint32_t> indices;
  };
  const auto size = static_cast<std::uint32_t>(config.train.size());
  config.prompt_at = [order = std::make_shared<std::array<Order, 2>>(), size,
                      shuffle = job.data.shuffle,
                      seed = derive_seed(seed, "data")](std::int64_t position) {
    const std::int64_t epoch = position / size;
    Order& kept = (*order)[static_cast<std::size_t>(epoch % 2)];
    if (kept.epoch != epoch)
      kept = {epoch, epoch_order(seed, static_cast<std::uint64_t>(epoch), size, shuffle)};
    return kept.indices[static_cast<std::size_t>(position % size)];
  };
  return config;
}

Result<std::vector<actors::WarmStartRecord>> warm_start_records(
    const JobSpec& job, const actors::ModelConfig& model, const actors::Tokenizer& tokenizer) {
  std::vector<actors::WarmStartRecord> records;
  if (!job.warm_start) return records;
  auto loaded =
      load_dataset(job.warm_start->train_files, dataset_keys(job), RecordNeeds::kCompletion);
  if (!loaded) return loaded.error();
  for (const Record& record : *loaded) {
    auto prompt = tokenizer.encode_prompt(record.prompt);
    auto completion = tokenizer.encode(*record.completion);
    for (const auto* encoded : {&prompt, &completion})
      if (!*encoded)
        return Error{ErrorCode::kInvalid, encoded->error().message, record.where,
                     "use text that the model's tokenizer covers"};
    // The end of a completion is learned as a token, where the model has one.
    if (!model.eos_token_ids.empty()) completion->push_back(model.eos_token_ids.front());
    // The end token counts: it takes a position as well.
    if (std::ssize(*prompt) > job.data.max_prompt_length ||
        std::ssize(*completion) > job.data.max_response_length)
      return Error{ErrorCode::kInvalid, "a warm-start record is longer than the job allows",
                   record.where, "raise data.max_prompt_length or data.max_response_length"};
    records.push_back({std::move(*prompt), std::move(*completion)});
  }
  return records;
}

}  // namespace tandem::cli
