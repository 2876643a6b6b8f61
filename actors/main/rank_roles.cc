// One function per role builds its actor from parts that can fail, such as loading a model, before
// the actor exists: an error becomes the Error of build() and not the failure of an actor. `begin`
// keeps the first message to the actor until the controller has heard RankReady.
//
// The order within build_learner() is the order in which ranks may wait for each other. Rank 0
// listens and tells the address before it loads, the ranks load at the same time, then all meet
// over sockets, and on GPUs start NCCL together. A rank that fails earlier leaves the others
// waiting for at most kGangTimeout; usually the controller hears of its end first and ends them.
//
// Memory of a GPU is measured here, when the rank starts, since only the rank sees how much is
// free; memory of the host was planned before (memory_plan.h).
#include "actors/main/rank_roles.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "actors/broadcast/broadcast_actor.h"
#include "actors/learner/learner_actor.h"
#include "actors/learner/native_trainer.h"
#include "actors/main/gang_shards.h"
#include "actors/main/rank_process.h"
#include "actors/main/role_config.h"
#include "actors/model/checkpoint.h"
#include "actors/model/kv_cache.h"
#include "actors/model/parameters.h"
#include "actors/rank/rank_failure.h"
#include "actors/reward/reward_actor.h"
#include "actors/rollout/native_engine.h"
#include "actors/rollout/rollout_actor.h"
#include "runtime/base/log.h"
#include "runtime/base/rng.h"
#include "runtime/base/secret.h"
#include "runtime/collective/socket.h"
#include "runtime/device/cuda_module.h"
#include "runtime/device/memory.h"
#include "runtime/device/stream.h"
#include "runtime/net/bulk.h"
#include "runtime/net/socket_folder.h"
#include "runtime/node/log_files.h"
#include "runtime/node/resources.h"
#include "scheduler/fleet/hang_timeout.h"

namespace tandem::cli {

using actors::StartRank;

namespace {

constexpr Duration kPayloadTimeout = std::chrono::seconds(30);
// How much longer one rank of a gang may take to load than another. This does not delay the news of
// a rank that ended: the controller hears of that at once.
constexpr Duration kGangTimeout = std::chrono::minutes(5);

// How long a rollout that is cut off keeps a version from being replaced; less where that would
// outlast the time for which the learner waits for a free place.
constexpr Duration kSubscriberSilenceMax = std::chrono::seconds(20);

// A learner rank other than 0. Its one handler follows rank 0 and does not return until the gang
// ends.
struct Follow {};
class Follower {
 public:
  using Inbox = std::variant<Follow>;
  // `follows` is true until rank 0 has let this rank go, or the gang broke.
  Follower(std::unique_ptr<actors::NativeTrainer> trainer,
           std::shared_ptr<std::atomic<bool>> follows)
      : trainer_(std::move(trainer)), follows_(std::move(follows)) {}
  void handle(runtime::Context& cx, Follow) {
    const Result<void> ended = trainer_->follow();
    *follows_ = false;
    if (!ended) cx.fail(ended.error());
  }

 private:
  std::unique_ptr<actors::NativeTrainer> trainer_;
  const std::shared_ptr<std::atomic<bool>> follows_;
};
static_assert(runtime::Actor<Follower>);

// Spawns an actor that has been made already. The factory can be called once, which is enough: the
// actors of a rank are never restarted within their process.
template <class A>
runtime::Ref<typename A::Inbox> spawn_made(runtime::System& system, std::unique_ptr<A> made,
                                           const std::string& name = "role") {
  auto kept = std::make_shared<std::unique_ptr<A>>(std::move(made));
  return system.spawn<A>(name, [kept] { return std::move(*kept); });
}

std::unique_ptr<runtime::ThreadPool> make_threads(std::int64_t threads) {
  // Without a pool an operator runs on the thread that calls it.
  if (threads <= 1) return nullptr;
  return std::make_unique<runtime::ThreadPool>(static_cast<int>(threads));
}

// The device of a rank whose pool has so many GPUs. A rank that was given a GPU must find one: the
// error says what is missing.
Result<runtime::DeviceKind> device_of(double gpus_per_actor) {
  if (gpus_per_actor <= 0) return runtime::DeviceKind::kCpu;
  if (const auto& module = runtime::cuda_module(); !module) return actors::of_input(module.error());
  return runtime::DeviceKind::kCuda;
}

// How a rank meets its gang: rank 0 has a listener, the others dial.
struct GangMeeting {
  runtime::GangSpec spec;
  std::optional<runtime::GangListener> listener;
};

// Rank 0 of a gang listens at `place` and tells the controller where, before it loads: the other
// ranks get their StartRank after that message and load meanwhile.
Result<GangMeeting> prepare_meeting(const StartRank& start,
                                    const runtime::Ref<actors::RankEvents>& controller,
                                    const std::function<Result<runtime::Endpoint>()>& place,
                                    const std::string& advertise) {
  const bool leads = start.ranks > 1 && start.rank == 0;
  GangMeeting meeting{
      .spec = {.size = start.ranks, .secret = leads ? random_secret() : start.gang_secret},
      .listener = std::nullopt};
  if (!leads) return meeting;
  const auto at = place();
  if (!at) return at.error();
  auto listener = runtime::GangListener::listen(*at);
  if (!listener) return listener.error();
  runtime::Endpoint told = listener->endpoint();
  if (!told.is_local() && !advertise.empty()) told.host = advertise;
  if (controller.tell(actors::RankListening{start.actor, start.incarnation, to_string(told),
                                            meeting.spec.secret}) != runtime::Delivery::kAccepted)
    return Error{ErrorCode::kUnreachable, "cannot tell the controller where the gang meets"};
  meeting.listener = std::move(*listener);
  return meeting;
}

// Waits for the gang. Null for a gang of one.
Result<std::unique_ptr<runtime::Collective>> meet(GangMeeting meeting, const StartRank& start) {
  if (start.ranks == 1) return std::unique_ptr<runtime::Collective>();
  if (meeting.listener) return std::move(*meeting.listener).accept(meeting.spec, kGangTimeout);
  const auto at = runtime::parse_endpoint(start.gang_endpoint);
  if (!at) return at.error();
  return runtime::dial_gang(*at, start.rank, meeting.spec, kGangTimeout);
}

// The memory for the engine's pages. On a GPU: the share gpu_memory_utilization of its memory, as
// in vLLM, less weights, their broadcasts and workspace. On a CPU: the memory that was reserved for
// `pages_planned` pages, where the controller planned any.
Result<actors::EngineConfig> engine_config_on(runtime::DeviceKind device, const JobSpec& job,
                                              const actors::ModelConfig& model,
                                              const runtime::WeightsConfig& weights,
                                              std::int64_t pages_planned) {
  if (device == runtime::DeviceKind::kCpu) {
    const auto machine = runtime::read_machine_resources();
    if (!machine) return machine.error();
    actors::EngineConfig config = engine_config(job, machine->memory_bytes);
    if (pages_planned > 0)
      config.kv_memory_bytes = static_cast<std::size_t>(pages_planned) *
                               actors::KvCache::page_bytes(model, config.block_size);
    return config;
  }
  actors::EngineConfig config = engine_config(job, 0);
  const runtime::MemoryInfo gpu = runtime::memory_info(device);
  const auto wanted = static_cast<std::size_t>(job.rollout.gpu_memory_utilization *
                                               static_cast<double>(gpu.total_bytes));
  // Less than the share may be free, when other processes use the GPU; a reserve is left for CUDA
  // itself.
  const std::size_t share =
      std::min(wanted, gpu.free_bytes - std::min(gpu.free_bytes, runtime::kGpuReserveBytes));
  std::size_t beside = actors::NativeEngine::bytes_beside_pages(model, config, device);
  if (weights.broadcasting) beside += runtime::broadcast_bytes_of_subscriber(weights);
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

// The payload socket of the controller that `dial` reaches, among those that are offered: the one
// of the same kind, Unix or TCP. Over TCP the host of `dial` is used, which is known to lead to the
// controller.
Result<runtime::Dial> payload_dial(const std::vector<std::string>& offered,
                                   const runtime::Dial& dial) {
  for (const std::string& text : offered) {
    auto endpoint = runtime::parse_endpoint(text);
    if (!endpoint) return endpoint.error();
    if (endpoint->is_local() != dial.to.is_local()) continue;
    if (!endpoint->is_local()) endpoint->host = dial.to.host;
    return runtime::Dial{std::move(*endpoint), dial.keys};
  }
  return Error{ErrorCode::kUnreachable, "the controller has no payload socket for this host",
               to_string(dial.to)};
}

}  // namespace

struct RoleHome::Parts {
  runtime::System& system;
  runtime::Directory& directory;
  runtime::IoThread& bulk_io;
  const RankNetwork network;
  EngineDevice& device;
  runtime::ParcelSender to_controller;
  runtime::Progress& progress;
  std::optional<runtime::SocketFolder> sockets;  // of rank 0 of a gang: where it listens

  std::unique_ptr<runtime::BulkClient> bulk;
  std::function<void()> begin, begin_broadcasts = [] {};
  // Whether this rank is a follower that waits for rank 0; shared with the Follower.
  const std::shared_ptr<std::atomic<bool>> follows = std::make_shared<std::atomic<bool>>(false);

  runtime::PayloadReader payload_reader() {
    return [client = bulk.get()](std::vector<runtime::PayloadRef> refs, auto done) {
      client->get_many(std::move(refs), kPayloadTimeout, std::move(done));
    };
  }
  std::string listening_address() const {
    return network.bind.empty() ? runtime::kLoopback : network.bind;
  }
  // How the publisher of `weights` serves other hosts; nullopt where their processes do not come.
  // Half of stall_max leaves the learner time after a silent subscriber has been given up.
  std::optional<runtime::Serving> serving_of(const runtime::WeightsConfig& weights) const {
    const bool always =
        weights.type == runtime::WeightsType::kTcp || weights.type == runtime::WeightsType::kNccl;
    const bool others_may_come =
        weights.type == runtime::WeightsType::kAuto && !network.bind.empty();
    if (!always && !others_may_come) return std::nullopt;
    return runtime::Serving{.bind = listening_address(),
                            .advertise = network.advertise,
                            .silence_max = std::min(kSubscriberSilenceMax, weights.stall_max / 2)};
  }
  // The place where rank 0 of a gang listens: TCP where other hosts may come, else a Unix socket.
  Result<runtime::Endpoint> gang_place() {
    const runtime::Dial& dial = network.controller;
    if (!dial.to.is_local() || !network.bind.empty())
      return runtime::Endpoint{.host = listening_address()};
    // Beside the folder of the controller's sockets, which lasts as long as this rank may.
    const auto controllers = std::filesystem::path(dial.to.path).parent_path();
    auto folder = runtime::SocketFolder::make(controllers.parent_path());
    if (!folder) return folder.error();
    return sockets.emplace(std::move(*folder)).next();
  }
  // Opens NCCL for weights that are broadcast; does nothing for other types.
  Result<void> prepare_broadcasts(runtime::WeightsConfig& weights, const std::string& job) {
    if (weights.type != runtime::WeightsType::kNccl) return {};
    if (const auto ready = open_nccl(); !ready) return ready.error();
    weights.broadcasting = {.nccl = &device.nccl->process(),
                            .device = runtime::DeviceKind::kCuda,
                            .name = job + "/weights"};
    return {};
  }
  Result<void> open_nccl() {
    if (device.nccl) return {};
    auto opened = RankNccl::open();
    if (!opened) return opened.error();
    device.nccl = *std::move(opened);
    return {};
  }
  // Starts the exchange of shards by NCCL. Null for a gang that is not on GPUs, whose sockets carry
  // everything. All ranks of a gang on GPUs call it, once they have met.
  Result<std::unique_ptr<runtime::ShardExchange>> share(const StartRank& start,
                                                        const actors::NativeTrainerSetup& setup,
                                                        const runtime::WeightsLayout& layout) {
    if (!setup.gang || setup.device != runtime::DeviceKind::kCuda)
      return std::unique_ptr<runtime::ShardExchange>();
    if (const auto ready = open_nccl(); !ready) return ready.error();
    return make_gang_shards({.name = start.job + "/learner",
                             .epoch = start.incarnation.value,
                             .layout = layout,
                             .bucket_floats_max = setup.buckets.floats_max,
                             .timeout = kGangTimeout},
                            *setup.gang, device.nccl->process());
  }
  // Spawns the actor for broadcasts. Does nothing where `rank` is null: those weights are only
  // fetched.
  void take_part_in_broadcasts(const StartRank& start, const runtime::WeightsConfig& weights,
                               std::shared_ptr<runtime::BroadcastRank> rank);
  std::function<void(const char*, Time)> phase_reporter() {
    return [p = &progress](const char* phase, Time now) { p->enter(phase, now); };
  }
};

void RoleHome::Parts::take_part_in_broadcasts(const StartRank& start,
                                              const runtime::WeightsConfig& weights,
                                              std::shared_ptr<runtime::BroadcastRank> rank) {
  if (!rank) return;
  const runtime::NcclProcess& nccl = *weights.broadcasting->nccl;
  auto ref =
      spawn_made(system,
                 std::make_unique<actors::BroadcastActor>(
                     actors::BroadcastActorConfig{.self = {start.actor, start.incarnation},
                                                  .leads = start.role == actors::Role::kLearner,
                                                  .nccl_version = nccl.api.version,
                                                  .layout = weights.layout,
                                                  .communicator = weights.broadcasting->name},
                     std::move(rank), nccl.records,
                     directory.remote<actors::BroadcastEvents>({broadcast_port(start.job), {}},
                                                               to_controller)),
                 "broadcast");
  directory.expose(kBroadcastPort, runtime::narrow<actors::BroadcastInbox>(ref));
  begin_broadcasts = [ref] {
    CHECK(ref.tell(actors::StartBroadcast{}) == runtime::Delivery::kAccepted);
  };
}

RoleHome::RoleHome(runtime::System& system, runtime::Directory& directory,
                   runtime::IoThread& bulk_io, RankNetwork network, EngineDevice& device,
                   runtime::ParcelSender to_controller, runtime::Progress& progress)
    : parts_(new Parts{.system = system,
                       .directory = directory,
                       .bulk_io = bulk_io,
                       .network = std::move(network),
                       .device = device,
                       .to_controller = std::move(to_controller),
                       .progress = progress}) {}

RoleHome::~RoleHome() = default;

Result<void> RoleHome::build(const StartRank& start, const JobSpec& job,
                             const runtime::Ref<actors::RankEvents>& controller) {
  auto payloads = payload_dial(start.bulk_endpoints, parts_->network.controller);
  if (!payloads) return payloads.error();
  parts_->bulk = std::make_unique<runtime::BulkClient>(parts_->bulk_io, std::move(*payloads));
  if (start.role == actors::Role::kRollout) return build_rollout(start, job);
  if (start.role == actors::Role::kLearner) return build_learner(start, job, controller);
  if (start.role == actors::Role::kReward) return build_reward(start, job);
  return Error{ErrorCode::kInvalid, "this version has no role " + name(start.role)};
}

Result<void> RoleHome::build_rollout(const StartRank& start, const JobSpec& job) {
  const auto device = device_of(job.pools.rollout.gpus_per_actor);
  if (!device) return device.error();
  auto info = actors::load_model_info(job.model.path, dtype_of(job.model));
  if (!info) return actors::of_input(info.error());
  auto weights = weights_config(job, {start.job, start.run_dir}, info->manifest);
  if (const auto ready = parts_->prepare_broadcasts(weights, start.job); !ready)
    return ready.error();
  parts_->device.threads = make_threads(job.pools.rollout.threads_per_actor);
  auto tokenizer = std::make_shared<const actors::Tokenizer>(std::move(info->tokenizer));
  parts_->device.queue = std::make_unique<runtime::Queue>(*device, parts_->device.threads.get());
  const auto make_engine = [&]() -> Result<std::unique_ptr<actors::NativeEngine>> {
    const auto config = engine_config_on(*device, job, info->config, weights, start.pages);
    if (!config) return config.error();
    return actors::NativeEngine::make({info->config, tokenizer}, *config,
                                      parts_->device.queue->stream());
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
  actors::RolloutConfig config{.self = {start.actor, start.incarnation},
                               .group_size = static_cast<std::int32_t>(job.rollout.n),
                               .max_num_seqs = static_cast<std::int32_t>(job.rollout.max_num_seqs)};
  // Models on a GPU are larger: in pieces of the size that suits a CPU a version would take
  // hundreds of steps.
  if (*device == runtime::DeviceKind::kCuda) config.copy_bytes_per_step = std::uint64_t{64} << 20;
  if (job.async.max_concurrent_rollouts)
    config.capacity = static_cast<std::int32_t>(*job.async.max_concurrent_rollouts);
  actors::RolloutActor::Joints joints;
  joints.exchange = parts_->directory.remote<actors::RolloutEvents>({rollout_port(start.job), {}},
                                                                    parts_->to_controller);
  joints.write = [bulk = parts_->bulk.get()](std::vector<std::string> payloads,
                                             runtime::WriteDone done) {
    bulk->put_many(std::move(payloads), kPayloadTimeout, std::move(done));
  };
  joints.progress = parts_->phase_reporter();
  // One object has two roles, and both actors keep it: subscriber and rank of the broadcasts.
  const std::shared_ptr<runtime::WeightSubscriber> subscriber = runtime::make_subscriber(weights);
  parts_->take_part_in_broadcasts(start, weights, {subscriber, subscriber->broadcasts()});
  auto ref =
      spawn_made(parts_->system, std::make_unique<actors::RolloutActor>(
                                     config, std::move(*engine), subscriber, std::move(joints)));
  parts_->directory.expose(kRolePort, runtime::narrow<actors::RolloutInbox>(ref));
  parts_->begin = [ref] {
    CHECK(ref.tell(actors::StartRollout{runtime::narrow<std::variant<actors::Step>>(ref)}) ==
          runtime::Delivery::kAccepted);
  };
  return {};
}

Result<void> RoleHome::build_learner(const StartRank& start, const JobSpec& job,
                                     const runtime::Ref<actors::RankEvents>& controller) {
  const auto device = device_of(job.pools.learner.gpus_per_actor);
  if (!device) return device.error();
  auto meeting = prepare_meeting(
      start, controller, [this] { return parts_->gang_place(); }, parts_->network.advertise);
  if (!meeting) return meeting.error();
  // Ranks watch each other by heartbeats over the sockets of the gang, with the limits
  // by which the controller watches ranks.
  meeting->spec.liveness.progress = [progress = &parts_->progress] { return progress->report(); };
  meeting->spec.liveness.beat = [progress = &parts_->progress] { progress->beat(); };
  meeting->spec.liveness.stuck_max = scheduler::hang_timeout;
  const RunPlace run{start.job, start.run_dir};
  const bool random = job.model.init == ModelInit::kRandom;
  auto threads = make_threads(job.pools.learner.threads_per_actor);
  auto model = actors::load_model(
      job.model.path, {.init = random ? actors::InitMode::kRandom : actors::InitMode::kPretrained,
                       .seed = derive_seed(static_cast<std::uint64_t>(job.seed), "init"),
                       .dtype = dtype_of(job.model),
                       .threads = threads.get()});
  if (!model) return actors::of_input(model.error());
  auto records = warm_start_records(job, model->config, model->tokenizer);
  if (!records) return actors::of_input(records.error());
  auto weights = weights_config(job, run, actors::published_manifest(model->config));

  actors::NativeTrainerSetup setup{.config = trainer_config(job, run, start.resume),
                                   .model = std::move(*model),
                                   .records = std::move(*records),
                                   .device = *device,
                                   .threads = std::move(threads),
                                   .beat = [progress = &parts_->progress] { progress->beat(); }};
  // Rank 0 alone publishes, so that it alone needs room on its GPU for broadcasts.
  if (weights.type == runtime::WeightsType::kNccl && start.rank == 0)
    setup.config.broadcast_bytes = runtime::broadcast_bytes_of_publisher(weights);
  auto met = meet(std::move(*meeting), start);
  if (!met) return met.error();
  setup.gang = std::move(*met);
  auto shards = parts_->share(start, setup, weights.layout);
  if (!shards) return shards.error();
  setup.shards = *std::move(shards);
  auto trainer = actors::NativeTrainer::make(std::move(setup));
  if (!trainer) return trainer.error();
  if (start.rank > 0) {
    *parts_->follows = true;
    auto ref = spawn_made(parts_->system,
                          std::make_unique<Follower>(std::move(*trainer), parts_->follows));
    parts_->begin = [ref] { CHECK(ref.tell(Follow{}) == runtime::Delivery::kAccepted); };
    return {};
  }
  weights.serving = parts_->serving_of(weights);
  if (const auto ready = parts_->prepare_broadcasts(weights, start.job); !ready)
    return ready.error();
  auto made = runtime::make_publisher(weights);
  if (!made) return made.error();
  const std::shared_ptr<runtime::WeightPublisher> publisher = *std::move(made);
  parts_->take_part_in_broadcasts(start, weights, {publisher, publisher->broadcasts()});
  auto exchange = parts_->directory.remote<actors::LearnerEvents>({learner_port(start.job), {}},
                                                                  parts_->to_controller);
  auto ref = spawn_made(
      parts_->system,
      std::make_unique<actors::LearnerActor>(
          actors::LearnerActorConfig{.self = {start.actor, start.incarnation},
                                     .publish_timeout = weights.stall_max,
                                     .progress = parts_->phase_reporter()},
          std::move(*trainer), publisher, parts_->payload_reader(), std::move(exchange)));
  parts_->directory.expose(kRolePort, runtime::narrow<actors::LearnerInbox>(ref));
  parts_->begin = [ref] {
    CHECK(ref.tell(actors::MeetExchange{}) == runtime::Delivery::kAccepted);
  };
  return {};
}

Result<void> RoleHome::build_reward(const StartRank& start, const JobSpec& job) {
  // The verifier names the log in the troubles that it reports: the program's stderr is in it.
  const auto log = runtime::log_path(start.run_dir + "/logs",
                                     start.actor.substr(start.job.size() + 1), start.incarnation);
  const actors::VerifierConfig judging = verifier_config(job, log.string());
  log::info("event=started actor={} {}", start.actor, describe(judging));
  auto verifier = actors::make_verifier(judging, actors::process_spawner(parts_->bulk_io));
  if (!verifier) return actors::of_input(verifier.error());
  actors::RewardActor::Joints joints;
  joints.exchange = parts_->directory.remote<actors::RewardEvents>({reward_port(start.job), {}},
                                                                   parts_->to_controller);
  joints.read = parts_->payload_reader();
  joints.progress = parts_->phase_reporter();
  auto ref =
      spawn_made(parts_->system, std::make_unique<actors::RewardActor>(
                                     actors::RewardConfig{.self = {start.actor, start.incarnation},
                                                          .prompt_key = job.data.prompt_key,
                                                          .answer_key = job.data.answer_key},
                                     std::move(*verifier), std::move(joints)));
  parts_->directory.expose(kRolePort, runtime::narrow<actors::RewardInbox>(ref));
  parts_->begin = [ref] { CHECK(ref.tell(actors::StartReward{}) == runtime::Delivery::kAccepted); };
  return {};
}

void RoleHome::begin() {
  parts_->begin();
  parts_->begin_broadcasts();
}

void RoleHome::close(int exit_status) {
  if (*parts_->follows) std::_Exit(exit_status);  // it owns nothing that others share
}

void RoleHome::destroy() { parts_->bulk.reset(); }

}  // namespace tandem::cli
