#include "actors/controller/room.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "actors/controller/demands.h"
#include "runtime/collective/nccl_api.h"
#include "scheduler/fleet/fits_ever.h"
#include "scheduler/fleet/memory_fit.h"

namespace tandem::controller {

namespace {

// The share of each GPU that a rank holds. A rank with several GPUs holds each of them whole.
std::int64_t gpu_share(const scheduler::Resources& need) {
  return std::min(need.gpu_milli, scheduler::kWholeGpu);
}

}  // namespace

NodeRecord& known_node(Turn& turn, const std::string& name) {
  const auto [it, is_new] = turn.state.nodes.try_emplace(name);
  NodeRecord& node = it->second;
  if (!is_new) return node;
  node.name = name;
  node.since = turn.now;
  node.awaited = true;
  const auto& cordoned = turn.state.durable.cordoned();
  if (const auto why = cordoned.find(name); why != cordoned.end()) node.cordoned = why->second;
  return node;
}

std::vector<scheduler::NodeCapacity> capacity(const ControllerState& state) {
  std::vector<scheduler::NodeCapacity> nodes;
  for (const auto& [id, node] : state.nodes)
    if (node.up) {
      scheduler::NodeCapacity room{.name = id,
                                   .total = node.total,
                                   .free = node.total - node.leased,
                                   .gpus_unusable = node.gpus_unusable,
                                   .gpus_absent = node.gpus_absent,
                                   .nccl = {.version = nccl_version_of(node),
                                            .shares_gpus = node.nccl.shares_gpus,
                                            .absent = node.nccl.absent},
                                   .cordoned = node.cordoned.has_value()};
      for (const GpuRecord& gpu : node.gpus) room.gpus_free_milli.push_back(gpu.free_milli);
      if (room.cordoned || !node.unwanted.empty()) {
        room.free = {};
        std::ranges::fill(room.gpus_free_milli, 0);
      }
      nodes.push_back(std::move(room));
    }
  return nodes;
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
    node.gpus[static_cast<std::size_t>(gpu)].free_milli -= gpu_share(need);
}

void give_back(Turn& turn, const RankRecord& rank) {
  const scheduler::Resources& need = rank.need;
  turn.note_change();
  NodeRecord& node = turn.state.nodes.at(rank.node);
  node.leased = node.leased - need;
  for (const std::int32_t gpu : rank.gpus)
    node.gpus[static_cast<std::size_t>(gpu)].free_milli += gpu_share(need);
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
  if (const auto fits = can_ever_run(state, shape); !fits) return fits.error();
  // Options to need less memory are for a refusal alone; the kept shape does not need them.
  shape.memory_options.clear();
  return shape;
}

JobShape settled(const ControllerState& state, JobShape shape) {
  std::vector<scheduler::RoleDemand> demands = demands_of(shape);
  scheduler::settle_memory(demands, capacity(state));
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const auto planned = shape.memory.find(shape.roles[i]);
    if (planned == shape.memory.end()) continue;
    planned->second = std::move(demands[i].memory);
    shape.per_rank.at(shape.roles[i]) = demands[i].per_rank;
  }
  return shape;
}

}  // namespace tandem::controller
