// The order is by what is free: GPUs, CPUs, memory, name. A search for a node with at least so much
// goes through it and leaps over nodes that have too little of one: those with the same GPUs and
// too few CPUs lie together, and so do those with the same GPUs and CPUs and too little memory.
#include "scheduler/fleet/free_room.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "runtime/base/check.h"
#include "scheduler/fleet/nccl_nodes.h"
#include "scheduler/fleet/node_room.h"

namespace tandem::scheduler {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

}  // namespace

bool FreeRoom::ByAmounts::operator()(const Resources& one, const Resources& other) const {
  const auto key = [](const Resources& size) {
    return std::tuple(size.cpu_milli, size.gpu_milli, size.memory_bytes);
  };
  return key(one) < key(other);
}

FreeRoom::Place FreeRoom::place_of(const NodeCapacity& node) {
  return {node.free.gpu_milli, node.free.cpu_milli, node.free.memory_bytes, node.name};
}

FreeRoom::FreeRoom(std::span<const NodeCapacity> nodes) {
  for (const NodeCapacity& node : nodes) set(node);
}

// The order refers to the names of its own nodes.
FreeRoom::FreeRoom(const FreeRoom& other) {
  for (const auto& [name, node] : other.nodes_) set(node);
}

void FreeRoom::count(const NodeCapacity& node, int by) {
  if (by > 0)
    order_.insert(place_of(node));
  else
    order_.erase(place_of(node));
  free_ = free_ + node.free * by;
  for (const std::int64_t gpu : node.gpus_free_milli)
    gpus_whole_ += gpu == kWholeGpu ? by * kWholeGpu : 0;
  memory_unknown_ += node.total.memory_bytes > 0 ? 0 : by;
}

void FreeRoom::set(NodeCapacity node) {
  erase(node.name);
  const std::string name = node.name;
  const NodeCapacity& kept = nodes_.emplace(name, std::move(node)).first->second;
  count(kept, 1);
  ++sizes_[kept.total];
  for (std::string& part : cordoned_parts(kept)) cordoned_.insert(std::move(part));
}

void FreeRoom::erase(const std::string& name) {
  const auto node = nodes_.find(name);
  if (node == nodes_.end()) return;
  count(node->second, -1);
  const auto size = sizes_.find(node->second.total);
  if (--size->second == 0) sizes_.erase(size);
  for (const std::string& part : cordoned_parts(node->second)) cordoned_.erase(part);
  nodes_.erase(node);
}

void FreeRoom::take(const std::string& node, std::span<const std::int32_t> gpus,
                    const Resources& rank) {
  change(node, gpus, rank, -1);
}

void FreeRoom::give(const std::string& node, std::span<const std::int32_t> gpus,
                    const Resources& rank) {
  change(node, gpus, rank, 1);
}

void FreeRoom::change(const std::string& name, std::span<const std::int32_t> gpus,
                      const Resources& rank, std::int64_t times) {
  NodeCapacity& node = nodes_.at(name);
  count(node, -1);
  node.free = node.free + rank * times;
  for (const std::int32_t gpu : gpus)
    node.gpus_free_milli.at(static_cast<std::size_t>(gpu)) += times * gpu_share(rank);
  count(node, 1);
}

std::vector<NodeCapacity> FreeRoom::all() const {
  std::vector<NodeCapacity> copies;
  for (const auto& [name, node] : nodes_) copies.push_back(node);
  return copies;
}

bool FreeRoom::fits_empty(const Resources& rank) const {
  return std::ranges::any_of(sizes_, [&](const auto& size) {
    NodeCapacity node{.total = size.first, .free = size.first};
    node.gpus_free_milli.assign(whole_gpus(node.total), kWholeGpu);
    return ranks_that_fit(rank, node, 1) == 1;
  });
}

std::int64_t FreeRoom::largest_memory() const {
  std::int64_t most = 0;
  if (memory_unknown_ > 0) return 0;
  for (const auto& [size, count] : sizes_) most = std::max(most, size.memory_bytes);
  return most;
}

std::string FreeRoom::cordoned() const {
  std::string names;
  for (const std::string& name : cordoned_) names += (names.empty() ? "" : ", ") + name;
  return names;
}

Resources FreeRoom::free_for(const Gang& gang) const {
  const std::int64_t need = gang.per_rank.gpu_milli;
  Resources free = free_;
  const bool shares = need > 0 && need < kWholeGpu;
  if (need > 0) free.gpu_milli = gpus_whole_;
  if (!gang.nccl && !shares) return free;
  free.gpu_milli = 0;
  for (const auto& [name, node] : nodes_)
    if (nccl_allows(gang, node)) free.gpu_milli += usable_gpu_milli(node, need);
  return free;
}

std::int64_t FreeRoom::ranks_on(const Place& place, const Gang& gang, std::int64_t wanted) const {
  ++looked_at_;
  const NodeCapacity& node = nodes_.find(place.name)->second;
  return nccl_allows(gang, node) ? ranks_that_fit(gang.per_rank, node, wanted) : 0;
}

const NodeCapacity* FreeRoom::best(const Gang& gang, std::int64_t wanted) const {
  CHECK(wanted > 0);
  const NodeCapacity* const all =
      gang.strategy == Strategy::kPack ? first_with_all(gang, wanted) : last_with_all(gang, wanted);
  return all || wanted == 1 ? all : most(gang, wanted);
}

// What a node must have free at least; nothing where the gang needs none, or where it may not
// matter.
FreeRoom::Place FreeRoom::least_for(const Gang& gang, std::int64_t wanted) const {
  const Resources need = gang.per_rank * wanted;
  const auto least = [](std::int64_t amount) { return amount > 0 ? amount : kLeast; };
  return {least(need.gpu_milli),
          least(need.cpu_milli),
          memory_unknown_ == 0 ? least(need.memory_bytes) : kLeast,
          {}};
}

const NodeCapacity* FreeRoom::first_with_all(const Gang& gang, std::int64_t wanted) const {
  const Place least = least_for(gang, wanted);
  auto at = order_.lower_bound(least);
  while (at != order_.end()) {
    if (at->cpu < least.cpu)
      at = order_.lower_bound(Place{at->gpu, least.cpu, kLeast, {}});
    else if (at->memory < least.memory)
      at = order_.lower_bound(Place{at->gpu, at->cpu, least.memory, {}});
    else if (ranks_on(*at, gang, wanted) == wanted)
      return &nodes_.find(at->name)->second;
    else
      ++at;
  }
  return nullptr;
}

// From the end, and among nodes with equal room from the first name.
const NodeCapacity* FreeRoom::last_with_all(const Gang& gang, std::int64_t wanted) const {
  const Place least = least_for(gang, wanted);
  auto end = order_.end();
  while (end != order_.begin()) {
    const Place last = *std::prev(end);
    if (last.gpu < least.gpu) return nullptr;
    auto begin = order_.lower_bound(Place{last.gpu, last.cpu, last.memory, {}});
    if (last.cpu < least.cpu)
      begin = order_.lower_bound(Place{last.gpu, kLeast, kLeast, {}});
    else if (last.memory < least.memory)
      begin = order_.lower_bound(Place{last.gpu, last.cpu, kLeast, {}});
    else
      for (auto at = begin; at != end; ++at)
        if (ranks_on(*at, gang, wanted) == wanted) return &nodes_.find(at->name)->second;
    end = begin;
  }
  return nullptr;
}

// No node takes all of them: the one that takes most.
const NodeCapacity* FreeRoom::most(const Gang& gang, std::int64_t wanted) const {
  const std::int64_t order = gang.strategy == Strategy::kPack ? 1 : -1;
  std::optional<
      std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::string_view>>
      best;
  for (const Place& place : order_) {
    const std::int64_t ranks = ranks_on(place, gang, wanted);
    if (ranks == 0) continue;
    const std::tuple worth(-ranks, order * place.gpu, order * place.cpu, order * place.memory,
                           place.name);
    if (!best || worth < *best) best = worth;
  }
  return best ? &nodes_.find(std::get<4>(*best))->second : nullptr;
}

}  // namespace tandem::scheduler
