#include "actors/controller/room.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "actors/controller/demands.h"
#include "runtime/collective/nccl_api.h"
#include "scheduler/fleet/fits_ever.h"
#include "scheduler/fleet/memory_fit.h"

namespace tandem::controller {

NodeRecord& known_node(Turn& turn, const std::string& name) {
  const auto [it, is_new] = turn.state.nodes.try_emplace(name);
  NodeRecord& node = it->second;
  if (!is_new) return node;
  node.name = name;
  node.since = turn.now;
  node.awaited = true;
  const auto& cordoned = turn.state.durable.cordoned();
  if (const auto why = cordoned.find(name); why != cordoned.end()) node.cordoned = why->second;
  renew_room(turn.state, node);
  return node;
}

scheduler::NodeCapacity capacity_of(const NodeRecord& node) {
  scheduler::NodeCapacity room{.name = node.name,
                               .total = node.total,
                               .free = node.total - node.leased,
                               .gpus_unusable = node.gpus_unusable,
                               .gpus_absent = node.gpus_absent,
                               .nccl = {.version = nccl_version_of(node),
                                        .shares_gpus = node.nccl.shares_gpus,
                                        .absent = node.nccl.absent},
                               .cordoned = node.cordoned || node.leaving};
  room.free.gpu_milli = 0;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const GpuRecord& gpu = node.gpus[i];
    room.gpus_free_milli.push_back(gpu.offered_milli());
    room.free.gpu_milli += gpu.offered_milli();
    if (gpu.cordoned && !gpu.gone) room.gpus_cordoned.push_back(static_cast<std::int32_t>(i));
  }
  if (room.cordoned || !node.unwanted.empty()) {
    room.free = {};
    std::ranges::fill(room.gpus_free_milli, 0);
  }
  return room;
}

std::vector<scheduler::NodeCapacity> capacity(const ControllerState& state) {
  return state.found.room.all();
}

void renew_room(ControllerState& state, const NodeRecord& node) {
  if (node.up) {
    state.found.room.set(capacity_of(node));
    state.found.lost.erase({node.since, node.name});
  } else {
    state.found.room.erase(node.name);
    state.found.lost.emplace(node.since, node.name);
  }
}

void date_node(ControllerState& state, NodeRecord& node, Time since) {
  state.found.lost.erase({node.since, node.name});
  node.since = since;
}

std::string nccl_version_of(const NodeRecord& node) {
  return node.nccl.version == 0 ? "" : collective::nccl_version_text(node.nccl.version);
}

void lease(Turn& turn, const RankRecord& rank) {
  const scheduler::Resources& need = rank.need;
  turn.note_change();
  NodeRecord& node = turn.state.nodes.at(rank.node);
  node.leased = node.leased + need;
  for (const std::int32_t gpu : rank.gpus)
    node.gpus[static_cast<std::size_t>(gpu)].free_milli -= scheduler::gpu_share(need);
  renew_room(turn.state, node);
}

void give_back(Turn& turn, const RankRecord& rank) {
  const scheduler::Resources& need = rank.need;
  turn.note_change();
  NodeRecord& node = turn.state.nodes.at(rank.node);
  node.leased = node.leased - need;
  for (const std::int32_t gpu : rank.gpus)
    node.gpus[static_cast<std::size_t>(gpu)].free_milli += scheduler::gpu_share(need);
  renew_room(turn.state, node);
}

Result<void> can_ever_run(const ControllerState& state, const JobShape& shape) {
  std::int64_t gpu_milli = 0;
  for (const scheduler::RoleDemand& role : demands_of(shape))
    gpu_milli += role.per_rank.gpu_milli * role.ranks * role.replicas;
  if (!shape.one_gpu.empty() && gpu_milli > scheduler::kWholeGpu)
    return Error{ErrorCode::kInfeasible,
                 "the job's actors take " +
                     scheduler::text_of_lacking({.gpu_milli = gpu_milli}, {}) +
                     " together, and it keeps to one GPU (" + shape.one_gpu + ")",
                 "", "lower their number or their gpus_per_actor"};
  return scheduler::fits_ever(capacity(state), demands_of(shape), shape.memory_options);
}

Result<JobShape> accepted(const ControllerState& state, const JobShape& asked) {
  JobShape shape = settled(state, asked);
  JobShape least = shape;
  if (const auto rollouts = least.replicas.find(messages::Role::kRollout);
      state.rules.grows && rollouts != least.replicas.end())
    rollouts->second = std::min(rollouts->second, 1);
  if (const auto fits = can_ever_run(state, least); !fits) return fits.error();
  // Options to need less memory are for a refusal alone; the kept shape does not need them.
  shape.memory_options.clear();
  return shape;
}

JobShape as_wanted(const JobRecord& job) {
  JobShape shape = as_placed(job.shape);
  shape.replicas = job.desired;
  return shape;
}

// Only the memory of the largest node matters.
JobShape settled(const ControllerState& state, JobShape shape) {
  if (shape.memory.empty()) return shape;
  std::vector<scheduler::RoleDemand> demands = demands_of(shape);
  const scheduler::NodeCapacity largest{
      .total = {.memory_bytes = state.found.room.largest_memory()}};
  scheduler::settle_memory(demands, std::span(&largest, 1));
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const auto planned = shape.memory.find(shape.roles[i]);
    if (planned == shape.memory.end()) continue;
    planned->second = std::move(demands[i].memory);
    shape.per_rank.at(shape.roles[i]) = demands[i].per_rank;
  }
  return shape;
}

}  // namespace tandem::controller
