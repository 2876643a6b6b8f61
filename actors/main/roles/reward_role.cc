#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/main/roles/registry.h"
#include "actors/main/roles/role_config.h"
#include "actors/rank/rank_failure.h"
#include "actors/reward/make_verifier.h"
#include "actors/reward/reward_actor.h"
#include "actors/reward/reward_sandbox.h"
#include "runtime/base/home_path.h"
#include "runtime/base/log.h"
#include "runtime/node/log_files.h"

namespace tandem::app {
namespace {

using messages::StartRank;

RoleDemands reward_demands(const job::JobSpec& job) {
  return {.replicas = job.reward.replicas,
          .per_rank = scheduler::resources({.cpus = job.pools.reward.cpus_per_actor})};
}

scheduler::MemoryDemand reward_memory(const job::JobSpec&, const PlannedModel&, Hosts) {
  scheduler::MemoryDemand demand;
  add_process(demand, nullptr);
  return demand;
}

Result<BuiltRole> build_reward(RankResources& resources, const StartRank& start,
                               const job::JobSpec& job, const actor::Ref<messages::RankEvents>&) {
  // The verifier names the log in the troubles that it reports: the program's stderr is in it.
  const auto log = node::log_path(start.run_dir + "/logs", start.actor.substr(start.job.size() + 1),
                                  start.incarnation);
  reward::RewardParts judging = reward_parts(job, log.string());
  if (const auto boxed = reward::enter_sandboxes(judging, {state_folder().string(), start.run_dir});
      !boxed)
    return rank::of_input(boxed.error());
  for (reward::VerifierConfig& config : judging.verifiers)
    config.threads = std::max(1, static_cast<int>(std::ceil(job.pools.reward.cpus_per_actor)));
  log::info("event=started actor={} {}", start.actor, describe(judging));
  auto verifier = reward::make_reward(judging, node::process_spawner(resources.bulk_io));
  if (!verifier) return rank::of_input(verifier.error());
  reward::RewardActor::Connections connections;
  connections.exchange = resources.exchange_for<messages::RewardPeer>(start.job);
  connections.read = resources.payload_reader();
  connections.progress = resources.phase_reporter();
  auto ref =
      spawn_made(resources.system,
                 std::make_unique<reward::RewardActor>(
                     reward::RewardConfig{.self = {start.actor, start.incarnation},
                                          .group_size = static_cast<std::int32_t>(job.rollout.n),
                                          .prompt_key = job.data.prompt_key,
                                          .answer_key = job.data.answer_key,
                                          .data_source_key = job.data.data_source_key},
                     std::move(*verifier), std::move(connections)));
  resources.expose_as<messages::RewardPeer>(ref);
  return BuiltRole{
      .begin = [ref] { CHECK(ref.tell(reward::StartReward{}) == actor::Delivery::kAccepted); },
      .meet_again = [ref] { return ref.tell(reward::MeetAgain{}) == actor::Delivery::kAccepted; },
      .sandbox = sandboxes_of(judging)};
}

}  // namespace

RoleEntry reward_role() {
  return {messages::Role::kReward, reward_demands, reward_memory, build_reward};
}

}  // namespace tandem::app
