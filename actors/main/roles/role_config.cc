// Field by field, without decisions of its own: a value that several keys decide is computed by a
// function that others can call too (lookahead(), budget_of()). Sections and
// enums that configure one role alone are that role's own types (job_spec.h, job_values.h).
//
// Random streams of a job are derived from its one seed by name ("rollout", "data", "evaluation"),
// so that a draw in one of them changes no other. The number of published versions is counted here
// alone (weights_family), since publisher, subscribers and memory plan must agree on it.
#include "actors/main/roles/role_config.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "actors/job/print_job.h"
#include "actors/model/checkpoint.h"
#include "runtime/base/rng.h"

namespace tandem::app {

namespace {

// Whether a version may arrive in memory of the rollout's GPU.
bool arrives_on_device(const job::JobSpec& job) {
  return weights::traits_of(job.weight_broadcast.type).arrives_on_gpu &&
         job.pools.rollout.gpus_per_actor > 0;
}

Duration minutes(double count) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::ratio<60>>(count));
}

// As `retention.archive_bytes` says.
std::size_t checkpoints_that_resume(std::int64_t kept) {
  return static_cast<std::size_t>(std::clamp(kept, std::int64_t{2}, std::int64_t{16}));
}

exchange::BestBy best_by(const job::JobSpec& job) {
  return {.key = job.learner.keep_best.value_or(""),
          .least = job.learner.keep_best_mode == job::KeepBestMode::kMin};
}

}  // namespace

device::DType dtype_of(const job::ModelSpec& model) {
  return model.dtype == job::ModelDtype::kBfloat16 ? device::DType::kBF16 : device::DType::kF32;
}

kernels::Rows products_of(const job::ModelSpec& model) {
  return model.batch_invariant ? kernels::Rows::kInvariant : kernels::Rows::kFastest;
}

scheduler::Budget budget_of(const job::JobSpec& job) {
  return {.max_staleness = job.async.max_staleness,
          .lookahead = lookahead(job.async),
          .sync_steps = job.async.trigger_parameter_sync_step,
          .groups_per_step = job.data.train_batch_size,
          .steps_total = job.learner.total_training_steps};
}

bool has_fixed_lag(const job::JobSpec& job) {
  return job.async.schedule == job::Schedule::kFixedLag;
}

rollout::EngineConfig engine_config(const job::JobSpec& job, std::uint64_t machine_memory_bytes) {
  const job::RolloutSpec& r = job.rollout;
  rollout::EngineConfig config{
      .sampling = r.sampling,
      .args = r.args,
      .max_prompt_length = static_cast<std::int32_t>(job.data.max_prompt_length),
      .truncation = job.data.truncation,
      .max_response_length = static_cast<std::int32_t>(job.data.max_response_length),
      .partial_rollout = job.async.partial_rollout,
      .kv_on_update = job.async.kv_on_update,
      .evaluation_share = job.eval.rollout_share,
      .products = products_of(job.model),
      .weights_arrive_on_device = arrives_on_device(job)};
  // A CPU computes nothing beside its host.
  if (job.pools.rollout.gpus_per_actor == 0) config.args.async_scheduling = false;
  // The share of the memory is for all rollouts of the job together and is split evenly, as if all
  // ran on this machine.
  const double share = r.gpu_memory_utilization * static_cast<double>(machine_memory_bytes) /
                       static_cast<double>(std::max<std::int64_t>(r.replicas, 1));
  config.kv_memory_bytes = static_cast<std::size_t>(share);
  return config;
}

learner::TrainerConfig trainer_config(const job::JobSpec& job, const RunLocation& run,
                                      bool resume) {
  learner::TrainerConfig config{.seed = static_cast<std::uint64_t>(job.seed)};
  if (weights::traits_of(job.weight_broadcast.type).versions == weights::VersionMemory::kGpuMemory)
    config.versions_on_device = weights_family(job, run).slots;
  config.algorithm = job.algorithm;
  config.batch = {.mini_batch_groups = job.learner.ppo_mini_batch_size.value_or(0),
                  .epochs = job.learner.ppo_epochs,
                  .response_length_max = static_cast<std::int32_t>(job.data.max_response_length),
                  .temperature = static_cast<float>(job.rollout.sampling.temperature)};
  config.optimizer = job.learner.optimizer;
  config.steps_total = job.learner.total_training_steps;
  config.rows_max = job.learner.max_token_len;
  config.positions_max = job.data.max_prompt_length + job.data.max_response_length;
  config.enable_gradient_checkpointing = job.learner.enable_gradient_checkpointing;
  config.observe_fraction = job.learner.observe_fraction;
  config.nonfinite_steps_max = job.learner.max_nonfinite_steps;
  config.products = products_of(job.model);
  if (job.warm_start) config.warm_start = *job.warm_start;
  if (job.rollout.name != job::EngineName::kNative) config.probe_positions = config.positions_max;
  config.checkpoints = {
      .directory = run.run_dir + "/checkpoints",
      .keep_max = job.learner.max_ckpt_to_keep,
      .resume = resume ? learner::ResumeMode::kAuto : learner::ResumeMode::kDisable};
  // Under fixed_lag step d is generated by version d - K, so that K older versions must be kept.
  if (has_fixed_lag(job)) config.older_versions = job.async.max_staleness;
  return config;
}

weights::WeightsConfig weights_family(const job::JobSpec& job, const RunLocation& run) {
  weights::WeightsConfig config{.type = job.weight_broadcast.type,
                                .name = weights::weights_name(run.job, run.run_dir),
                                .directory = run.run_dir + "/weights",
                                .slots = static_cast<int>(job.async.max_staleness) + 2};
  config.stall_max = duration_of(job.weight_broadcast.timeout_s);
  config.bucket_bytes = static_cast<std::uint64_t>(job.weight_broadcast.bucket_megabytes) << 20;
  // A delta is applied in the host's memory.
  if (!weights::traits_of(config.type).arrives_on_gpu) config.delta = job.weight_broadcast.delta;
  return config;
}

std::int64_t changes_bytes(const job::JobSpec& job, Hosts hosts, std::int64_t published) {
  const weights::ServedOverTcp served = weights::traits_of(job.weight_broadcast.type).served;
  const bool fetched =
      served == weights::ServedOverTcp::kAlways ||
      (served == weights::ServedOverTcp::kToOtherHosts && hosts == Hosts::kSeveral);
  switch (fetched ? weights_family(job, {"job", "run"}).delta : weights::DeltaUse::kNever) {
    case weights::DeltaUse::kAuto:
      return published / 2;
    case weights::DeltaUse::kAlways:
      return 2 * published;
    case weights::DeltaUse::kNever:
      return 0;
  }
  return 0;
}

weights::WeightsConfig weights_config(const job::JobSpec& job, const RunLocation& run,
                                      const device::Manifest& manifest) {
  weights::WeightsConfig config = weights_family(job, run);
  config.layout = weights::layout_of(manifest);
  return config;
}

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

namespace {

reward::VerifierConfig verifier_config(const job::RewardPartSpec& spec, const std::string& log) {
  const job::RewardLimitsSpec& limits = spec.limits;
  const auto bytes = [](const std::optional<std::int64_t>& megabytes) {
    return megabytes ? std::optional(static_cast<std::uint64_t>(*megabytes) << 20) : std::nullopt;
  };
  reward::VerifierConfig config{.type = spec.type,
                                .pattern = spec.pattern.value_or(""),
                                .percent = spec.percent,
                                .sandbox = sandbox_of(spec),
                                .timeout = duration_of(spec.timeout_s),
                                .retries = static_cast<int>(spec.retries),
                                .log = log};
  config.program = {.argv = spec.command.value_or(std::vector<std::string>{}),
                    .env = spec.env,
                    .limits = {.file_bytes = bytes(limits.file_size_megabytes),
                               .cpu_seconds_per_line = limits.cpu_seconds_per_line,
                               .memory_bytes = bytes(limits.memory_megabytes)}};
  if (limits.open_files)
    config.program.limits.open_files = static_cast<std::uint64_t>(*limits.open_files);
  config.python = {.function = spec.function.value_or(job::PlacedName{}).text,
                   .signature = spec.signature,
                   .interpreter = spec.python.text,
                   .batch_size = static_cast<int>(spec.batch_size),
                   .start_timeout = duration_of(spec.start_timeout_s)};
  config.code = {.language = spec.language,
                 .score = spec.score,
                 .case_timeout = duration_of(spec.case_timeout_s),
                 .cases_max = spec.cases_max,
                 .compile_timeout = duration_of(spec.compile_timeout_s),
                 .memory_bytes = static_cast<std::uint64_t>(spec.code_memory_megabytes) << 20};
  for (const std::filesystem::path& path : spec.readable) config.readable.push_back(path.string());
  config.http = {.url = spec.url.value_or(""),
                 .header_env = spec.header_env,
                 .batch_size = static_cast<int>(spec.batch_size),
                 .concurrency = static_cast<int>(spec.concurrency)};
  config.judge = judge_of(spec);
  return config;
}

}  // namespace

reward::RewardParts reward_parts(const job::JobSpec& job, const std::string& log) {
  reward::RewardParts reward;
  for (const job::NamedReward& one : rewards_of(job.reward)) {
    reward.parts.push_back({one.name, one.spec->sources, *one.spec});
    reward.verifiers.push_back(verifier_config(*one.spec, log));
  }
  if (!job.reward.parts.empty()) reward.whole = job.reward;
  return reward;
}

exchange::EvaluationPlan evaluation_plan(const job::JobSpec& job,
                                         const std::vector<job::Record>& records) {
  std::vector<std::optional<std::string>> data_source;
  for (const job::Record& record : records) data_source.push_back(record.data_source);
  return {.prompts = static_cast<std::int32_t>(records.size()),
          .sampling = {.n = static_cast<std::int32_t>(job.eval.n),
                       .temperature = static_cast<float>(job.eval.temperature),
                       .top_p = static_cast<float>(job.eval.top_p),
                       .top_k = static_cast<std::int32_t>(job.eval.top_k),
                       .greedy = job.eval.greedy},
          .seed = derive_seed(static_cast<std::uint64_t>(job.seed), "evaluation"),
          .sources = exchange::sources_of(data_source),
          .failure_reward = job.reward.on_failure.value_or(0)};
}

exchange::ExchangeConfig exchange_config(const job::JobSpec& job, const RunLocation& run,
                                         bool resume, JobPrompts prompts) {
  const job::DatasetKeys keys = dataset_keys(job);
  const auto seed = static_cast<std::uint64_t>(job.seed);
  const learner::FilterGroups& filter = job.algorithm.filter_groups;
  exchange::ExchangeConfig config{
      .job = run.job,
      .seed = derive_seed(seed, "rollout"),
      .budget = budget_of(job),
      .fixed_lag = has_fixed_lag(job),
      .n = static_cast<std::int32_t>(job.rollout.n),
      .warm_start = job.warm_start.has_value(),
      .save = {.steps = job.learner.save_freq,
               .epochs = job.learner.save_every_epochs.value_or(0),
               .time = minutes(job.learner.save_every_minutes.value_or(0))},
      .checkpoints_kept = job.learner.max_ckpt_to_keep,
      .test_freq = job.learner.test_freq,
      .val_before_train = job.learner.val_before_train,
      .best = best_by(job),
      .samples = {.per_step = job.samples.per_step, .evaluation = job.samples.evaluation},
      .file_limits = {.samples_bytes = static_cast<std::uint64_t>(job.retention.samples_bytes),
                      .metrics_bytes = static_cast<std::uint64_t>(job.retention.metrics_bytes),
                      .journal_bytes = static_cast<std::uint64_t>(job.retention.journal_bytes),
                      .archive_bytes = static_cast<std::uint64_t>(job.retention.archive_bytes),
                      .checkpoints = checkpoints_that_resume(job.learner.max_ckpt_to_keep),
                      .best = best_by(job),
                      .tracker_bytes = static_cast<std::uint64_t>(job.retention.tracker_bytes)},
      .on_failure = job.reward.on_failure,
      .filter_groups = {.enable = filter.enable,
                        .by_accuracy = filter.metric == learner::FilterMetric::kAcc,
                        .lower = filter.lower_bound,
                        .upper = filter.upper_bound},
      .gen_batches_max = filter.max_num_gen_batches,
      .resume = resume,
      .job_yaml = print_job(job),
      .devices = {.per_rollout = scheduler::devices_of(job.pools.rollout.gpus_per_actor),
                  .learner = static_cast<double>(job.learner.ranks) *
                             scheduler::devices_of(job.pools.learner.gpus_per_actor)},
      .sequences = {.running_max = job.rollout.args.max_num_seqs,
                    .held_max = job.async.max_concurrent_rollouts},
      .pricing = job.pricing};
  if (job.pools.rollout.autoscale)
    config.fleet_window_steps = job.pools.rollout.autoscale->window_steps;
  if (job.save_on_cancel) config.save_on_cancel = messages::kSaveOnCancelMax;
  if (weights::traits_of(job.weight_broadcast.type).nccl)
    config.broadcasts =
        scheduler::BroadcastLimits{.forming_max = duration_of(job.weight_broadcast.timeout_s)};
  config.record_keys = {.answer = keys.answer, .data_source = keys.data_source};
  config.train = std::move(prompts.training.records);
  config.evaluation = evaluation_plan(job, prompts.validation);
  for (const job::Record& record : prompts.validation)
    config.validation.add(record.prompt, record.json);
  config.prompt_at = [order =
                          std::make_shared<job::PromptOrder>(std::move(prompts.training.order))](
                         std::int64_t position) { return order->at(position); };
  return config;
}

namespace {

// The token by which a warm start teaches the end of a completion, where the model has one: the end
// of the template's turn, if the model stops at it (Llama 3's first eos_token_id ends a text
// instead), else the first of its eos_token_ids.
std::optional<std::int32_t> end_token(const job::Record& record, const model::ModelConfig& model,
                                      const model::Tokenizer& tokenizer) {
  if (model.eos_token_ids.empty()) return {};
  if (record.chat) {
    const auto turn = tokenizer.encode(record.chat->end_of_turn());
    if (turn && !turn->empty() && std::ranges::count(model.eos_token_ids, turn->front()) > 0)
      return turn->front();
  }
  return model.eos_token_ids.front();
}

}  // namespace

Result<void> read_warm_start(const job::JobSpec& job, const model::ModelConfig& model,
                             const model::Tokenizer& tokenizer, const TakeWarmStartRecord& take,
                             const job::TellReading& tell) {
  if (!job.warm_start) return {};
  const auto encode = [&](const job::Record& record) -> Result<void> {
    auto prompt = tokenizer.encode_prompt(record.prompt);
    auto completion = tokenizer.encode(*record.completion);
    for (const auto* encoded : {&prompt, &completion})
      if (!*encoded)
        return Error{ErrorCode::kInvalid, encoded->error().message, record.where,
                     "use text that the model's tokenizer covers"};
    rollout::truncate(*prompt, job.data.max_prompt_length, job.data.truncation);
    if (const auto end = end_token(record, model, tokenizer)) completion->push_back(*end);
    // The end token counts: it takes a position as well.
    if (std::ssize(*prompt) > job.data.max_prompt_length ||
        std::ssize(*completion) > job.data.max_response_length)
      return Error{ErrorCode::kInvalid, "a warm-start record is longer than the job allows",
                   record.where, "raise data.max_prompt_length or data.max_response_length"};
    take({std::move(*prompt), std::move(*completion)});
    return {};
  };
  return read_dataset(job.warm_start->train_files, dataset_keys(job), job::RecordNeeds::kCompletion,
                      encode, tell);
}

Result<std::vector<learner::WarmStartRecord>> warm_start_records(
    const job::JobSpec& job, const model::ModelConfig& model, const model::Tokenizer& tokenizer) {
  std::vector<learner::WarmStartRecord> records;
  const auto keep = [&](learner::WarmStartRecord record) { records.push_back(std::move(record)); };
  if (auto read = read_warm_start(job, model, tokenizer, keep); !read) return read.error();
  return records;
}

}  // namespace tandem::app
