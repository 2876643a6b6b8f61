// An actor is built from parts that can fail, such as loading a model, before it exists: an error
// becomes the Error of build_rollout() and not the failure of an actor. Memory of a GPU is measured
// here, when the rank starts, since only the rank sees how much is free; memory of the host was
// planned before, by the same functions (rollout_memory()).
#include <algorithm>
#include <limits>
#include <utility>

#include "actors/main/roles/registry.h"
#include "actors/main/roles/role_config.h"
#include "actors/main/roles/served_engine_setup.h"
#include "actors/model/checkpoint.h"
#include "actors/model/kv_cache.h"
#include "actors/model/parameters.h"
#include "actors/model/weights.h"
#include "actors/rank/rank_failure.h"
#include "actors/rollout/native_engine.h"
#include "actors/rollout/rollout_actor.h"
#include "runtime/base/log.h"
#include "runtime/device/memory.h"
#include "runtime/node/resources.h"
#include "runtime/weights/weight_family.h"

namespace tandem::app {
namespace {

using device::DeviceKind;
using messages::StartRank;
using rollout::NativeEngine;
using scheduler::MemoryDemand;

std::int64_t rollout_bytes(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

RoleDemands rollout_demands(const job::JobSpec& job) {
  const job::RolloutPoolSpec& pool = job.pools.rollout;
  return {
      .replicas = job.rollout.replicas,
      .per_rank = scheduler::resources({.cpus = pool.cpus_per_actor, .gpus = pool.gpus_per_actor}),
      .strategy = pool.strategy,
      .threads = pool.threads_per_actor,
      .nccl = weights::traits_of(job.weight_broadcast.type).nccl ||
              job.rollout.engine.weight_transfer == rollout::WeightTransfer::kNccl};
}

scheduler::PagedMemory pages_of(const job::JobSpec& job, const model::ModelConfig& model) {
  rollout::EngineConfig config = engine_config(job, 0);
  // Without a limit of memory pages_taken() is the number that could ever be in use.
  config.kv_memory_bytes = std::numeric_limits<std::size_t>::max();
  return {.name = "KV pages",
          .page_bytes = rollout_bytes(model::KvCache::page_bytes(model, config.args.block_size)),
          .pages_min = NativeEngine::pages_needed(config),
          .pages_max = NativeEngine::pages_taken(model, config),
          .share = job.rollout.gpu_memory_utilization,
          .sharers = static_cast<std::int32_t>(std::max<std::int64_t>(job.rollout.replicas, 1)),
          .share_key = "rollout.gpu_memory_utilization"};
}

// Whether a rollout keeps a place for whole versions. A rollout on the learner's host packs
// versions directly from shared memory, or from files of a local disk, and needs none.
bool versions_arrive(const job::JobSpec& job, DeviceKind device, Hosts hosts) {
  if (device != DeviceKind::kCpu) return !engine_config(job, 0).weights_arrive_on_device;
  const weights::ReadInPlace read = weights::traits_of(job.weight_broadcast.type).read_in_place;
  return read == weights::ReadInPlace::kNever ||
         (read == weights::ReadInPlace::kOnThePublishersHost && hosts == Hosts::kSeveral);
}

// Whether the model is computed in a server, and this rank has neither weights nor pages.
bool has_server(const job::JobSpec& job) { return job.rollout.name != job::EngineName::kNative; }

MemoryDemand rollout_memory(const job::JobSpec& job, const PlannedModel& model, Hosts hosts) {
  const std::int64_t published = rollout_bytes(model::published_manifest(model.config).bytes_total);
  if (has_server(job)) {
    MemoryDemand demand = served_memory(job, model);
    add_row(demand, "changes of weights", changes_bytes(job, hosts, published));
    return demand;
  }
  const DeviceKind device = planned_device(job.pools.rollout.gpus_per_actor);
  const rollout::EngineConfig config = engine_config(job, 0);
  MemoryDemand demand;
  // On a GPU weights, activations and pages are in its memory.
  if (device == DeviceKind::kCpu) {
    const std::size_t weights =
        model::Weights::bytes(model.config, model::WeightsUse::kInference, device);
    add_row(demand, "weights", rollout_bytes(weights));
    add_row(
        demand, "activations",
        rollout_bytes(NativeEngine::bytes_beside_pages(model.config, config, device) - weights));
    demand.paged = pages_of(job, model.config);
  }
  if (versions_arrive(job, device, hosts)) add_row(demand, "weights that arrive", published);
  add_row(demand, "changes of weights", changes_bytes(job, hosts, published));
  add_process(demand, &model);
  return demand;
}

// The memory for the engine's pages. On a GPU it is the share gpu_memory_utilization of its memory,
// as in vLLM, less weights, their broadcasts and workspace. On a CPU it is the memory that was
// reserved for `pages_planned` pages, where the controller planned any.
Result<rollout::EngineConfig> engine_config_on(device::DeviceKind device, const job::JobSpec& job,
                                               const model::ModelConfig& model,
                                               const weights::WeightsConfig& weights,
                                               std::int64_t pages_planned) {
  if (device == device::DeviceKind::kCpu) {
    const auto machine = node::read_machine_resources();
    if (!machine) return machine.error();
    rollout::EngineConfig config = engine_config(job, machine->memory_bytes);
    if (pages_planned > 0)
      config.kv_memory_bytes = static_cast<std::size_t>(pages_planned) *
                               model::KvCache::page_bytes(model, config.args.block_size);
    return config;
  }
  rollout::EngineConfig config = engine_config(job, 0);
  const device::MemoryInfo gpu = device::memory_info(device);
  const auto wanted = static_cast<std::size_t>(job.rollout.gpu_memory_utilization *
                                               static_cast<double>(gpu.total_bytes));
  // Less than the share may be free, when other processes use the GPU; a reserve is left for CUDA
  // itself.
  const std::size_t share =
      std::min(wanted, gpu.free_bytes - std::min(gpu.free_bytes, device::kGpuReserveBytes));
  std::size_t beside = rollout::NativeEngine::bytes_beside_pages(model, config, device);
  if (weights.broadcasting) beside += weights::broadcast_bytes_of_subscriber(weights);
  if (beside >= share)
    return Error{
        ErrorCode::kOutOfMemory,
        "weights and workspace of a rollout take " + std::to_string(beside) +
            " bytes, and it may take " + std::to_string(share) + " of a GPU that has " +
            std::to_string(gpu.free_bytes) + " of " + std::to_string(gpu.total_bytes) + " free",
        "rollout.gpu_memory_utilization", "raise it, or lower rollout.max_num_batched_tokens"};
  config.kv_memory_bytes = share - beside;
  return config;
}

Result<std::unique_ptr<rollout::Engine>> make_native_engine(
    RankResources& resources, DeviceKind device, const job::JobSpec& job, model::ModelInfo info,
    const weights::WeightsConfig& weights, std::int64_t pages_planned) {
  resources.device.threads = make_threads(job.pools.rollout.threads_per_actor);
  const auto tokenizer = std::make_shared<const model::Tokenizer>(std::move(info.tokenizer));
  resources.device.queue = std::make_unique<device::Queue>(device, resources.device.threads.get());
  const auto make_engine = [&]() -> Result<std::unique_ptr<NativeEngine>> {
    const auto config = engine_config_on(device, job, info.config, weights, pages_planned);
    if (!config) return config.error();
    return NativeEngine::make({info.config, tokenizer}, *config, resources.device.queue->stream());
  };
  // A process that starts at the same time on this GPU may take memory that memory_info() counted
  // as free: two more attempts measure again.
  auto engine = make_engine();
  for (int again = 0; again < 2 && !engine && engine.error().code == ErrorCode::kOutOfMemory;
       ++again) {
    log::warn("event=engine_again: {}", engine.error().message);
    engine = make_engine();
  }
  if (!engine) return engine.error();
  return std::unique_ptr<rollout::Engine>(*std::move(engine));
}

Result<BuiltRole> build_rollout(RankResources& resources, const StartRank& start,
                                const job::JobSpec& job, const actor::Ref<messages::RankEvents>&) {
  // A server computes on the GPUs that this rank has.
  const auto device = device_of(has_server(job) ? 0 : job.pools.rollout.gpus_per_actor);
  if (!device) return device.error();
  auto info = model::load_model_info(job.model.path, dtype_of(job.model));
  if (!info) return rank::of_input(info.error());
  auto weights = weights_config(job, {start.job, start.run_dir}, info->manifest);
  if (const auto ready = resources.prepare_broadcasts(weights, start.job); !ready)
    return ready.error();
  auto engine = has_server(job) ? make_served_engine(resources, start, job, *std::move(info))
                                : make_native_engine(resources, *device, job, *std::move(info),
                                                     weights, start.pages);
  if (!engine) return engine.error();
  rollout::RolloutConfig config{
      .self = {start.actor, start.incarnation},
      .group_size = static_cast<std::int32_t>(job.rollout.n),
      .max_num_seqs = static_cast<std::int32_t>(job.rollout.args.max_num_seqs)};
  // Models on a GPU are larger: in pieces of the size that suits a CPU a version would take
  // hundreds of steps.
  if (*device == device::DeviceKind::kCuda) config.copy_bytes_per_step = std::uint64_t{64} << 20;
  if (job.async.max_concurrent_rollouts)
    config.capacity = static_cast<std::int32_t>(*job.async.max_concurrent_rollouts);
  rollout::RolloutActor::Connections connections;
  connections.exchange = resources.exchange_for<messages::RolloutPeer>(start.job);
  connections.write = [bulk = resources.bulk.get()](std::vector<std::string> payloads,
                                                    payload::WriteDone done) {
    bulk->put_many(std::move(payloads), kPayloadTimeout, std::move(done));
  };
  connections.progress = resources.phase_reporter();
  // One object has two roles, and both actors keep it: subscriber and rank of the broadcasts.
  const std::shared_ptr<weights::WeightSubscriber> subscriber = weights::make_subscriber(weights);
  resources.take_part_in_broadcasts(start, weights, {subscriber, subscriber->broadcasts()});
  auto ref = spawn_made(resources.system,
                        std::make_unique<rollout::RolloutActor>(
                            config, std::move(*engine), subscriber, std::move(connections)));
  resources.expose_as<messages::RolloutPeer>(ref);
  return BuiltRole{
      .begin =
          [ref] {
            CHECK(ref.tell(rollout::StartRollout{actor::narrow<std::variant<rollout::Step>>(
                      ref)}) == actor::Delivery::kAccepted);
          },
      .meet_again = [ref] { return ref.tell(rollout::MeetAgain{}) == actor::Delivery::kAccepted; }};
}

}  // namespace

RoleEntry rollout_role() {
  return {messages::Role::kRollout, rollout_demands, rollout_memory, build_rollout};
}

}  // namespace tandem::app
