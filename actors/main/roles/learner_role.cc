// The order within build_learner() is the order in which ranks may wait for each other. Rank 0
// listens and tells the address before it loads, the ranks load at the same time, then all meet
// over sockets, and on GPUs start NCCL together. A rank that fails earlier leaves the others
// waiting for at most kGangTimeout; usually the controller hears of its end first and ends them.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "actors/learner/learner_actor.h"
#include "actors/learner/native_trainer.h"
#include "actors/learner/packing.h"
#include "actors/learner/trainer_setup.h"
#include "actors/main/roles/gang_shards.h"
#include "actors/main/roles/learner_setup.h"
#include "actors/main/roles/registry.h"
#include "actors/main/roles/role_config.h"
#include "actors/model/parameters.h"
#include "actors/rank/rank_failure.h"
#include "actors/runs/batch_log.h"
#include "runtime/base/secret.h"
#include "runtime/collective/shard_exchange.h"
#include "runtime/collective/socket.h"
#include "runtime/weights/weight_family.h"
#include "scheduler/fleet/hang_timeout.h"

namespace tandem::app {
namespace {

using device::DeviceKind;
using messages::StartRank;
using scheduler::MemoryDemand;
using scheduler::MemoryUse;

// How much longer one rank of a gang may take to load than another. This does not delay the news of
// a rank that ended: the controller hears of that at once.
constexpr Duration kGangTimeout = std::chrono::minutes(5);

// The memory for each token of a batch: the token, log-probabilities, versions, the loss's stores,
// and the payload that they came in.
constexpr std::int64_t kBatchBytesPerToken = 48;

std::int64_t learner_bytes(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

RoleDemands learner_demands(const job::JobSpec& job) {
  const job::LearnerPoolSpec& pool = job.pools.learner;
  const bool gpu_gang = job.learner.ranks > 1 && pool.gpus_per_actor > 0;
  return {
      .ranks = job.learner.ranks,
      .per_rank = scheduler::resources({.cpus = pool.cpus_per_actor, .gpus = pool.gpus_per_actor}),
      .strategy = pool.strategy,
      .threads = pool.threads_per_actor,
      .nccl = gpu_gang || weights::traits_of(job.weight_broadcast.type).nccl};
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
std::int64_t versions_on_host(const job::JobSpec& job) {
  const bool shared = weights::traits_of(job.weight_broadcast.type).versions ==
                      weights::VersionMemory::kSharedMemory;
  return shared ? weights_family(job, {"job", "run"}).slots : 0;
}

// The most rows of one forward pass. On a CPU a micro-batch takes a further group only up to
// rows_target(); the memory of rows beyond that is mapped and never written, so that it is not
// counted.
std::int64_t forward_rows(const job::JobSpec& job, DeviceKind device) {
  const std::int64_t group =
      job.data.max_prompt_length + job.rollout.n * job.data.max_response_length;
  const std::int64_t most = job.learner.max_token_len;
  return std::min(most, std::max(learner::rows_target(device, most), group));
}

MemoryDemand learner_memory(const job::JobSpec& job, const PlannedModel& model, Hosts hosts) {
  const DeviceKind device = planned_device(job.pools.learner.gpus_per_actor);
  learner::TrainerConfig config = trainer_config(job, {"job", "run"}, false);
  config.rows_max = forward_rows(job, device);
  const device::Manifest master = model::make_manifest(model.config);
  const device::Manifest published_layout = model::published_manifest(model.config);
  const std::int64_t arena = learner_bytes(master.bytes_total);
  const std::int64_t published = learner_bytes(published_layout.bytes_total);
  const bool on_gpu = device != DeviceKind::kCpu;
  MemoryDemand demand;
  if (!on_gpu)
    for (const learner::MemoryPart& part : learner::trainer_memory(model.config, config, device))
      add_row(demand, part.name, learner_bytes(part.bytes));
  add_host_copies(demand, {.master = arena,
                           .published = published,
                           .on_gpu = on_gpu,
                           .rounded = published_layout != master,
                           .reference = config.algorithm.needs_reference()});
  add_row(demand, "older versions", config.older_versions * published);
  add_row(demand, "published versions", versions_on_host(job) * published);
  add_row(demand, "changes of weights", changes_bytes(job, hosts, published));
  const std::int64_t tokens =
      job.data.train_batch_size *
      (job.data.max_prompt_length + job.rollout.n * job.data.max_response_length);
  add_row(demand, "batch", tokens * kBatchBytesPerToken);
  if (job.record == job::Recording::kReplay)  // a part of it: as it is, encoded and packed
    add_row(demand, "batch as recorded", learner_bytes(3 * runs::kBatchPartBytes));
  add_process(demand, &model);
  // On a CPU files are written directly from the weights and moments and read into them. The
  // moments of a GPU come to the host for that, in two arenas.
  if (on_gpu)
    for (const char* peak : {"checkpoint", "restore"})
      add_row(demand, peak, 2 * arena, MemoryUse::kPeak);
  return demand;
}

// How a rank meets its gang: rank 0 has a listener, the others dial.
struct GangMeeting {
  collective::GangSpec spec;
  std::optional<collective::GangListener> listener;
};

// Rank 0 of a gang listens at `place` and tells the controller where, before it loads: the other
// ranks get their StartRank after that message and load meanwhile.
Result<GangMeeting> prepare_meeting(const StartRank& start,
                                    const actor::Ref<messages::RankEvents>& controller,
                                    const std::function<Result<link::Endpoint>()>& place,
                                    const RankNetwork& network) {
  const bool leads = start.ranks > 1 && start.rank == 0;
  GangMeeting meeting{.spec = {.size = start.ranks,
                               .secret = leads ? random_secret() : start.gang_secret,
                               .privacy = start.gang_plain ? collective::Privacy::kPlain
                                                           : collective::Privacy::kSealed},
                      .listener = std::nullopt};
  if (!leads) return meeting;
  const auto at = place();
  if (!at) return at.error();
  auto listener = collective::GangListener::listen(*at, network.ports);
  if (!listener) return listener.error();
  link::Endpoint told = listener->endpoint();
  if (!told.is_local() && !network.advertise.empty()) told.host = network.advertise;
  if (controller.tell(messages::RankListening{start.actor, start.incarnation, to_string(told),
                                              meeting.spec.secret}) != actor::Delivery::kAccepted)
    return Error{ErrorCode::kUnreachable, "cannot tell the controller where the gang meets"};
  meeting.listener = std::move(*listener);
  return meeting;
}

// Waits for the gang. Null for a gang of one.
Result<std::unique_ptr<collective::Collective>> meet(GangMeeting meeting, const StartRank& start) {
  if (start.ranks == 1) return std::unique_ptr<collective::Collective>();
  if (meeting.listener) return std::move(*meeting.listener).accept(meeting.spec, kGangTimeout);
  const auto at = link::parse_endpoint(start.gang_endpoint);
  if (!at) return at.error();
  return collective::dial_gang(*at, start.rank, meeting.spec, kGangTimeout);
}

// The place where rank 0 of a gang listens: TCP where other hosts may come, else a Unix socket.
Result<link::Endpoint> gang_place(RankResources& resources) {
  const link::Dial& dial = resources.network.controller;
  if (!dial.to.is_local() || !resources.network.bind.empty())
    return link::Endpoint{.host = resources.listening_address()};
  // The new folder lies beside the folder of the controller's sockets, which lasts as long as this
  // rank may.
  const auto controllers = std::filesystem::path(dial.to.path).parent_path();
  auto folder = link::SocketFolder::make(controllers.parent_path());
  if (!folder) return folder.error();
  return resources.sockets.emplace(std::move(*folder)).next();
}

// Starts the exchange of shards by NCCL. Null for a gang that is not on GPUs, whose sockets carry
// everything. All ranks of a gang on GPUs call it, once they have met.
Result<std::unique_ptr<collective::ShardExchange>> share(RankResources& resources,
                                                         const StartRank& start,
                                                         const learner::NativeTrainerSetup& setup,
                                                         const weights::WeightsLayout& layout) {
  if (!setup.gang || setup.device != device::DeviceKind::kCuda)
    return std::unique_ptr<collective::ShardExchange>();
  if (const auto ready = resources.open_nccl(); !ready) return ready.error();
  return make_gang_shards({.name = start.job + "/learner",
                           .epoch = start.incarnation.value,
                           .layout = layout,
                           .bucket_floats_max = setup.buckets.floats_max,
                           .timeout = kGangTimeout},
                          *setup.gang, resources.device.nccl->process());
}

// Under `record: replay` the file that takes the batches of this incarnation; else nothing.
Result<std::optional<learner::BatchRecorder>> recorder_of(const job::JobSpec& job,
                                                          const StartRank& start,
                                                          DeviceKind device) {
  if (job.record == job::Recording::kNone) return std::optional<learner::BatchRecorder>();
  auto opened = runs::BatchLogWriter::open(
      start.run_dir,
      {.version = TANDEM_VERSION, .device = device_name(device), .yaml = start.job_yaml},
      {.bytes = static_cast<std::uint64_t>(job.retention.replay_bytes)});
  if (!opened) return opened.error();
  const auto log = std::make_shared<runs::BatchLogWriter>(*std::move(opened));
  return std::optional(learner::BatchRecorder{
      .keep = [log](const messages::TrainStep& step,
                    const std::vector<std::string>& payloads) -> Result<learner::RecordedBatches> {
        if (auto kept = log->keep(step, payloads); !kept) return kept.error();
        return learner::RecordedBatches{log->bytes(), log->first_after_gone()};
      },
      .sync = [log] { return log->sync(); }});
}

Result<BuiltRole> build_learner(RankResources& resources, const StartRank& start,
                                const job::JobSpec& job,
                                const actor::Ref<messages::RankEvents>& controller) {
  const auto device = device_of(job.pools.learner.gpus_per_actor);
  if (!device) return device.error();
  auto meeting = prepare_meeting(
      start, controller, [&resources] { return gang_place(resources); }, resources.network);
  if (!meeting) return meeting.error();
  // Ranks watch each other by heartbeats over the sockets of the gang, with the limits
  // by which the controller watches ranks.
  meeting->spec.liveness.progress = [progress = &resources.progress] { return progress->report(); };
  meeting->spec.liveness.beat = [progress = &resources.progress] { progress->beat(steady_now()); };
  meeting->spec.liveness.stuck_max = scheduler::hang_timeout;
  const RunLocation run{start.job, start.run_dir};
  auto loaded = learner_setup(job, trainer_config(job, run, start.resume), *device);
  if (!loaded) return loaded.error();
  learner::NativeTrainerSetup setup = *std::move(loaded);
  setup.beat = [progress = &resources.progress] { progress->beat(steady_now()); };
  // The other ranks only follow: rank 0 and the collective say what they do.
  if (start.rank == 0)
    setup.enter = [progress = &resources.progress](const char* phase) {
      progress->enter(phase, steady_now());
    };
  auto weights = weights_config(job, run, model::published_manifest(setup.model.config));
  // Rank 0 alone publishes, so that it alone needs room on its GPU for broadcasts.
  if (weights::traits_of(weights.type).nccl && start.rank == 0)
    setup.config.broadcast_bytes = weights::broadcast_bytes_of_publisher(weights);
  auto met = meet(std::move(*meeting), start);
  if (!met) return met.error();
  setup.gang = std::move(*met);
  auto shards = share(resources, start, setup, weights.layout);
  if (!shards) return shards.error();
  setup.shards = *std::move(shards);
  auto trainer = learner::NativeTrainer::make(std::move(setup));
  if (!trainer) return trainer.error();
  if (start.rank > 0) {
    const auto follows = std::make_shared<std::atomic<bool>>(true);
    auto ref =
        spawn_made(resources.system, std::make_unique<Follower>(std::move(*trainer), follows));
    return BuiltRole{.begin = [ref] { CHECK(ref.tell(Follow{}) == actor::Delivery::kAccepted); },
                     .waits = follows};
  }
  weights.serving = resources.serving_of(weights);
  if (const auto ready = resources.prepare_broadcasts(weights, start.job); !ready)
    return ready.error();
  auto made = weights::make_publisher(weights);
  if (!made) return made.error();
  const std::shared_ptr<weights::WeightPublisher> publisher = *std::move(made);
  resources.take_part_in_broadcasts(start, weights, {publisher, publisher->broadcasts()});
  auto recorder = recorder_of(job, start, *device);
  if (!recorder) return recorder.error();
  auto exchange = resources.exchange_for<messages::LearnerPeer>(start.job);
  auto ref = spawn_made(
      resources.system,
      std::make_unique<learner::LearnerActor>(
          learner::LearnerActorConfig{.self = {start.actor, start.incarnation},
                                      .publish_timeout = weights.stall_max,
                                      .progress = resources.phase_reporter(),
                                      .recorder = *std::move(recorder)},
          std::move(*trainer), publisher, resources.payload_reader(), std::move(exchange)));
  resources.expose_as<messages::LearnerPeer>(ref);
  return BuiltRole{
      .begin = [ref] { CHECK(ref.tell(learner::MeetExchange{}) == actor::Delivery::kAccepted); },
      .meet_again = [ref] { return ref.tell(learner::MeetAgain{}) == actor::Delivery::kAccepted; }};
}

}  // namespace

RoleEntry learner_role() {
  return {messages::Role::kLearner, learner_demands, learner_memory, build_learner};
}

}  // namespace tandem::app
