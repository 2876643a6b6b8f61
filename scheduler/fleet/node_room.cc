#include "scheduler/fleet/node_room.h"

#include <algorithm>

namespace tandem::scheduler {

std::int64_t usable_gpu_milli(const NodeCapacity& node, std::int64_t need) {
  std::int64_t usable = 0;
  for (const std::int64_t free : node.gpus_free_milli) {
    if (need == 0 || need >= kWholeGpu)
      usable += need == 0 || free == kWholeGpu ? free : 0;
    else
      usable += free / need * need;
  }
  return usable;
}

std::int64_t ranks_that_fit(const Resources& rank, const NodeCapacity& node, std::int64_t wanted) {
  if (node.cordoned) return 0;
  std::int64_t count = wanted;
  const auto limit = [&count](std::int64_t need, std::int64_t have) {
    if (need > 0) count = std::min(count, std::max<std::int64_t>(0, have / need));
  };
  limit(rank.cpu_milli, node.free.cpu_milli);
  limit(rank.gpu_milli, usable_gpu_milli(node, rank.gpu_milli));
  if (node.total.memory_bytes > 0) limit(rank.memory_bytes, node.free.memory_bytes);
  return count;
}

std::vector<NodeCapacity> emptied(std::span<const NodeCapacity> nodes) {
  std::vector<NodeCapacity> empty(nodes.begin(), nodes.end());
  for (NodeCapacity& node : empty) {
    node.free = node.total;
    node.cordoned = false;
    node.gpus_cordoned.clear();
    node.gpus_free_milli.assign(whole_gpus(node.total), kWholeGpu);
  }
  return empty;
}

std::vector<std::string> cordoned_parts(const NodeCapacity& node) {
  if (node.cordoned) return {node.name};
  std::vector<std::string> parts;
  for (const std::int32_t gpu : node.gpus_cordoned)
    parts.push_back(node.name + "'s GPU " + std::to_string(gpu));
  return parts;
}

std::string cordoned(std::span<const NodeCapacity> nodes) {
  std::string names;
  for (const NodeCapacity& node : nodes)
    for (const std::string& part : cordoned_parts(node))
      names += (names.empty() ? "" : ", ") + part;
  return names;
}

Resources sum(std::span<const NodeCapacity> nodes, Resources NodeCapacity::*part) {
  Resources all;
  for (const NodeCapacity& node : nodes) all = all + node.*part;
  return all;
}

Resources largest(std::span<const NodeCapacity> nodes, Resources NodeCapacity::*part) {
  Resources most;
  for (const NodeCapacity& node : nodes) {
    const Resources& have = node.*part;
    most.cpu_milli = std::max(most.cpu_milli, have.cpu_milli);
    most.gpu_milli = std::max(most.gpu_milli, have.gpu_milli);
    most.memory_bytes = std::max(most.memory_bytes, have.memory_bytes);
  }
  return most;
}

std::string gpus_found(std::span<const NodeCapacity> nodes) {
  const bool some = std::ranges::any_of(nodes, [](const auto& n) { return n.total.gpu_milli > 0; });
  std::string unusable;
  const NodeCapacity* first = nullptr;  // the first node without any
  std::size_t without = 0;
  for (const NodeCapacity& node : nodes) {
    for (const std::string& gpu : node.gpus_unusable)
      unusable += "; " + node.name + " cannot use " + gpu;
    if (node.total.gpu_milli > 0 || !node.gpus_unusable.empty()) continue;
    if (without++ == 0) first = &node;
  }
  if (some || without == 0) return unusable;
  const std::string found = first->gpus_absent.empty() ? "no GPU" : first->gpus_absent;
  const std::string others = without > 1 ? " and " + std::to_string(without - 1) + " more" : "";
  return unusable + "; " + first->name + others + (without > 1 ? " have: " : " has: ") + found;
}

}  // namespace tandem::scheduler
