#include "actors/main/replay_gang.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "actors/main/roles/learner_setup.h"
#include "actors/main/roles/rank_resources.h"
#include "actors/main/roles/role_config.h"
#include "runtime/base/log.h"
#include "runtime/collective/collective.h"

namespace tandem::app {
namespace {

learner::TrainerConfig replay_config(const job::JobSpec& job, const ReplayGang::Start& start) {
  learner::TrainerConfig config = trainer_config(job, {job.name, start.scratch.string()}, false);
  config.versions_on_device = 0;  // nobody subscribes to a replay
  if (!start.checkpoint) return config;
  config.checkpoints.resume = learner::ResumeMode::kPath;
  config.checkpoints.resume_path = *start.checkpoint;
  return config;
}

}  // namespace

ReplayGang::ReplayGang(int ranks)
    : watches_(static_cast<std::size_t>(ranks)),
      executor_(std::max(ranks - 1, 1), 0),
      system_(executor_, [](const ActorId& who, const Error& why) {
        log::warn("event=rank_failed rank={} error=\"{}\"", who.name, why.message);
      }) {}

Result<std::unique_ptr<ReplayGang>> ReplayGang::make(const job::JobSpec& job, const Start& start) {
  const auto device = device_of(job.pools.learner.gpus_per_actor);
  if (!device) return device.error();
  const auto ranks = static_cast<int>(job.learner.ranks);
  if (ranks > 1 && *device != device::DeviceKind::kCpu)
    return Error{ErrorCode::kInfeasible,
                 "a gang of " + std::to_string(ranks) +
                     " ranks on GPUs cannot be replayed: a "
                     "replay is one process, and has one GPU",
                 "", "replay a run with `learner.ranks: 1`, or one on CPUs"};
  std::unique_ptr<ReplayGang> gang(new ReplayGang(ranks));
  gang->device_ = device_name(*device);
  auto members = collective::make_local_collectives(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    auto setup = learner_setup(job, replay_config(job, start), *device);
    if (!setup) return setup.error();
    if (ranks > 1) setup->gang = std::move(members[at]);
    auto trainer = learner::NativeTrainer::make(*std::move(setup));
    if (!trainer) return trainer.error();
    (*trainer)->watch(&gang->watches_[at]);
    if (rank == 0) {
      gang->leader_ = *std::move(trainer);
      continue;
    }
    const auto ref = spawn_made(
        gang->system_,
        std::make_unique<Follower>(*std::move(trainer), std::make_shared<std::atomic<bool>>(true)),
        std::to_string(rank));
    CHECK(ref.tell(Follow{}) == actor::Delivery::kAccepted);
  }
  return gang;
}

// The leader leaves the gang before the threads are joined: a follower that could not be told to
// stop fails then, and so ends too.
ReplayGang::~ReplayGang() {
  if (leader_)
    if (auto stopped = leader_->stop_gang(); !stopped)
      log::warn("event=gang_not_stopped error=\"{}\"", stopped.error().message);
  leader_.reset();
  executor_.stop();
}

Result<ReplayGang::Watched> ReplayGang::train_watched(const learner::TrainBatch& batch) {
  for (learner::TokenWatch& watch : watches_) watch.on = true;
  auto trained = leader_->train(batch);
  if (!trained) return trained.error();
  Watched watched{.trained = *std::move(trained), .tokens = {}};
  for (learner::TokenWatch& watch : watches_) {
    watch.on = false;
    std::ranges::move(watch.completions, std::back_inserter(watched.tokens));
    watch.completions.clear();
  }
  return watched;
}

}  // namespace tandem::app
