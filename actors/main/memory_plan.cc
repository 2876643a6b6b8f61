// A row is one block that a rank allocates, or several of one kind. Where an object has a function
// that gives its bytes before it is made (Weights, KvCache, the decoders, trainer_memory), the row
// is the result of that function, so that the plan and the allocation cannot differ. The other rows
// are estimates with a measured factor (memory_plan.h).
//
// Options are found by trying: each list of changes is applied to a copy of the job, the rules are
// asked, and the copy is planned anew. No formula says what a change saves.
#include "actors/main/memory_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "actors/learner/packing.h"
#include "actors/learner/trainer_memory.h"
#include "actors/main/job/job_rules.h"
#include "actors/main/role_config.h"
#include "actors/model/kv_cache.h"
#include "actors/model/parameters.h"
#include "actors/model/weights.h"
#include "actors/rollout/native_engine.h"

namespace tandem::cli {

using actors::NativeEngine;
using actors::Role;
using runtime::DeviceKind;
using scheduler::MemoryDemand;
using scheduler::MemoryOption;
using scheduler::MemoryUse;

namespace {

std::int64_t int_of(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

DeviceKind planned_device(double gpus_per_actor) {
  return gpus_per_actor > 0 ? DeviceKind::kCuda : DeviceKind::kCpu;
}

void add_row(MemoryDemand& demand, const char* name, std::int64_t bytes,
             MemoryUse use = MemoryUse::kLasting) {
  if (bytes > 0) demand.rows.push_back({name, bytes, use});
}

void add_process(MemoryDemand& demand, const PlannedModel* model) {
  if (model) add_row(demand, "tokenizer", model->tokenizer_bytes * kTokenizerBytesPerFileByte);
  add_row(demand, "process", kRankProcessBytes);
}

scheduler::PagedMemory pages_of(const JobSpec& job, const actors::ModelConfig& model) {
  actors::EngineConfig config = engine_config(job, 0);
  // Without a limit of memory pages_taken() is the number that could ever be in use.
  config.kv_memory_bytes = std::numeric_limits<std::size_t>::max();
  return {.name = "KV pages",
          .page_bytes = int_of(actors::KvCache::page_bytes(model, config.block_size)),
          .pages_min = NativeEngine::pages_needed(config),
          .pages_max = NativeEngine::pages_taken(model, config),
          .share = job.rollout.gpu_memory_utilization,
          .sharers = static_cast<std::int32_t>(std::max<std::int64_t>(job.rollout.replicas, 1)),
          .share_key = "rollout.gpu_memory_utilization"};
}

// Whether a rollout keeps a place for whole versions. A rollout on the learner's host packs
// versions directly from shared memory, or from files of a local disk, and needs none.
bool versions_arrive(const JobSpec& job, DeviceKind device, Hosts hosts) {
  if (device != DeviceKind::kCpu) return !engine_config(job, 0).weights_arrive_on_device;
  switch (job.weight_broadcast.type) {
    case BroadcastType::kShm:
      return false;
    case BroadcastType::kAuto:
    case BroadcastType::kDisk:
      return hosts == Hosts::kSeveral;
    case BroadcastType::kCudaIpc:
    case BroadcastType::kTcp:
    case BroadcastType::kNccl:
      return true;
  }
  return true;
}

MemoryDemand plan_rollout(const JobSpec& job, const PlannedModel& model, Hosts hosts) {
  const DeviceKind device = planned_device(job.pools.rollout.gpus_per_actor);
  const actors::EngineConfig config = engine_config(job, 0);
  const std::int64_t published = int_of(actors::published_manifest(model.config).bytes_total);
  MemoryDemand demand;
  // On a GPU weights, activations and pages are in its memory.
  if (device == DeviceKind::kCpu) {
    const std::size_t weights =
        actors::Weights::bytes(model.config, actors::WeightsUse::kInference, device);
    add_row(demand, "weights", int_of(weights));
    add_row(demand, "activations",
            int_of(NativeEngine::bytes_beside_pages(model.config, config, device) - weights));
    demand.paged = pages_of(job, model.config);
  }
  if (versions_arrive(job, device, hosts)) add_row(demand, "weights that arrive", published);
  add_process(demand, &model);
  return demand;
}

// Copies that NativeTrainer keeps on the host beside its device; sizes in bytes. `rounded`: the
// published dtype is not that of the master weights.
struct HostCopies {
  std::int64_t master, published;
  bool on_gpu, rounded, reference;
};

void add_host_copies(MemoryDemand& demand, const HostCopies& copies) {
  if (copies.on_gpu) add_row(demand, "weights", copies.master);
  if (copies.rounded) add_row(demand, "weights in the published dtype", copies.published);
  if (copies.reference) add_row(demand, "the reference as published", copies.published);
}

// Versions that the publisher keeps in shared memory. Files and GPU memory are not the host's.
std::int64_t versions_on_host(const JobSpec& job) {
  const BroadcastType type = job.weight_broadcast.type;
  if (type == BroadcastType::kDisk || type == BroadcastType::kCudaIpc) return 0;
  return weights_family(job, {"job", "run"}).slots;
}

// The most rows of one forward pass. On a CPU a micro-batch takes a further group only up to
// rows_target(); the memory of rows beyond that is mapped and never written, so that it is not
// counted.
std::int64_t forward_rows(const JobSpec& job, DeviceKind device) {
  const std::int64_t group =
      job.data.max_prompt_length + job.rollout.n * job.data.max_response_length;
  const std::int64_t most = job.learner.max_token_len;
  return std::min(most, std::max(actors::rows_target(device, most), group));
}

MemoryDemand plan_learner(const JobSpec& job, const PlannedModel& model) {
  const DeviceKind device = planned_device(job.pools.learner.gpus_per_actor);
  actors::TrainerConfig config = trainer_config(job, {"job", "run"}, false);
  config.rows_max = forward_rows(job, device);
  const runtime::Manifest master = actors::make_manifest(model.config);
  const runtime::Manifest published_layout = actors::published_manifest(model.config);
  const std::int64_t arena = int_of(master.bytes_total);
  const std::int64_t published = int_of(published_layout.bytes_total);
  const bool on_gpu = device != DeviceKind::kCpu;
  MemoryDemand demand;
  if (!on_gpu)
    for (const actors::MemoryPart& part : actors::trainer_memory(model.config, config, device))
      add_row(demand, part.name, int_of(part.bytes));
  add_host_copies(demand, {.master = arena,
                           .published = published,
                           .on_gpu = on_gpu,
                           .rounded = published_layout != master,
                           .reference = config.algorithm.needs_reference()});
  add_row(demand, "older versions", config.older_versions * published);
  add_row(demand, "published versions", versions_on_host(job) * published);
  const std::int64_t tokens =
      job.data.train_batch_size *
      (job.data.max_prompt_length + job.rollout.n * job.data.max_response_length);
  add_row(demand, "batch", tokens * kBatchBytesPerToken);
  add_process(demand, &model);
  // On a CPU files are written directly from the weights and moments and read into them. The
  // moments of a GPU come to the host for that, in two arenas.
  if (on_gpu)
    for (const char* peak : {"checkpoint", "restore"})
      add_row(demand, peak, 2 * arena, MemoryUse::kPeak);
  return demand;
}

// One setting as a user would give it with --set, and its effect on a job.
struct Change {
  std::string setting;
  std::function<void(JobSpec&)> apply;
};
using Changes = std::vector<Change>;

Change integer_change(std::string key, std::int64_t value,
                      std::function<void(JobSpec&, std::int64_t)> apply) {
  return {std::move(key) + "=" + std::to_string(value),
          [value, apply = std::move(apply)](JobSpec& job) { apply(job, value); }};
}

// Changes of a key: its halves in descending order, as long as they stay above `least`, then
// `least` itself.
Changes halvings(const char* key, std::int64_t value, std::int64_t least,
                 const std::function<void(JobSpec&, std::int64_t)>& apply) {
  Changes changes;
  for (std::int64_t half = value / 2; half > least; half /= 2)
    changes.push_back(integer_change(key, half, apply));
  if (least < value) changes.push_back(integer_change(key, least, apply));
  return changes;
}

// One sequence must fit into a forward pass (job_rules.cc).
Changes token_changes(const JobSpec& job) {
  return halvings("learner.max_token_len", job.learner.max_token_len,
                  job.data.max_prompt_length + job.data.max_response_length,
                  [](JobSpec& j, std::int64_t n) { j.learner.max_token_len = n; });
}

// One group must fit into the engine.
Changes sequence_changes(const JobSpec& job) {
  return halvings("rollout.max_num_seqs", job.rollout.max_num_seqs, job.rollout.n,
                  [](JobSpec& j, std::int64_t n) { j.rollout.max_num_seqs = n; });
}

// Tokens that an engine computes in a step, but no fewer than one for each sequence.
Changes batched_changes(const JobSpec& job) {
  return halvings("rollout.max_num_batched_tokens", job.rollout.max_num_batched_tokens,
                  job.rollout.max_num_seqs,
                  [](JobSpec& j, std::int64_t n) { j.rollout.max_num_batched_tokens = n; });
}

Change checkpointing() {
  return {"learner.enable_gradient_checkpointing=true",
          [](JobSpec& job) { job.learner.enable_gradient_checkpointing = true; }};
}

Change by_files() {
  return {"weight_broadcast.type=disk",
          [](JobSpec& job) { job.weight_broadcast.type = BroadcastType::kDisk; }};
}

Change half_precision() {
  return {"model.dtype=bfloat16", [](JobSpec& job) { job.model.dtype = ModelDtype::kBfloat16; }};
}

// The strongest change of each kind, together. Each list ends with its strongest.
Changes strongest(const JobSpec& job) {
  Changes all{checkpointing()};
  for (Changes changes : {token_changes(job), batched_changes(job), sequence_changes(job)})
    if (!changes.empty()) all.push_back(std::move(changes.back()));
  all.push_back(by_files());
  return all;
}

// From changes without an effect on the results, through those that cost speed, to another dtype,
// which changes the numbers of the training.
std::vector<Changes> changes_to_try(const JobSpec& job) {
  std::vector<Changes> tries{{checkpointing()}};
  for (const Change& change : token_changes(job)) tries.push_back({change});
  for (const Change& change : token_changes(job)) tries.push_back({checkpointing(), change});
  for (const Change& change : batched_changes(job)) tries.push_back({change});
  for (const Change& change : sequence_changes(job)) tries.push_back({change});
  tries.push_back({by_files()});
  tries.push_back({by_files(), checkpointing()});
  tries.push_back(strongest(job));
  tries.push_back({half_precision()});
  tries.push_back(strongest(job));
  tries.back().insert(tries.back().begin(), half_precision());
  return tries;
}

// nullopt where the changed job breaks a rule, or the model's sizes do not allow the dtype.
std::optional<MemoryOption> option_of(const JobSpec& job, const PlannedModel& model, Hosts hosts,
                                      const Changes& changes) {
  JobSpec changed = job;
  MemoryOption option{.changes = static_cast<int>(changes.size())};
  for (const Change& change : changes) {
    change.apply(changed);
    option.setting += (option.setting.empty() ? "" : " and ") + change.setting;
  }
  PlannedModel computed = model;
  if (broken_rule(changed) || !actors::compute_in(dtype_of(changed.model), computed.config))
    return std::nullopt;
  for (auto& [role, demand] : plan_memory(changed, computed, hosts))
    option.demand.emplace(name(role), std::move(demand));
  return option;
}

}  // namespace

PlannedModel planned_model(actors::ModelConfig config, const std::filesystem::path& directory) {
  std::error_code absent;
  const auto bytes = std::filesystem::file_size(directory / "tokenizer.json", absent);
  return {std::move(config), absent ? 0 : static_cast<std::int64_t>(bytes)};
}

std::map<Role, MemoryDemand> plan_memory(const JobSpec& job, const PlannedModel& model,
                                         Hosts hosts) {
  MemoryDemand reward;
  add_process(reward, nullptr);
  return {{Role::kRollout, plan_rollout(job, model, hosts)},
          {Role::kLearner, plan_learner(job, model)},
          {Role::kReward, std::move(reward)}};
}

std::vector<MemoryOption> memory_options(const JobSpec& job, const PlannedModel& model,
                                         Hosts hosts) {
  std::map<std::string, MemoryDemand> asked;
  for (auto& [role, demand] : plan_memory(job, model, hosts)) asked.emplace(name(role), demand);
  std::vector<MemoryOption> options;
  for (const Changes& changes : changes_to_try(job))
    // An option that changes no demand, such as a setting that the job has already, is left out.
    if (auto option = option_of(job, model, hosts, changes); option && option->demand != asked)
      options.push_back(*std::move(option));
  return options;
}

void add_memory_plan(const JobSpec& job, const PlannedModel& model, Hosts hosts,
                     actors::JobShape& shape) {
  shape.memory = plan_memory(job, model, hosts);
  shape.memory_options = memory_options(job, model, hosts);
}

}  // namespace tandem::cli
