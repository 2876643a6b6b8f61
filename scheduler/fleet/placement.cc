#include "scheduler/fleet/placement.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

std::int64_t ranks_that_fit(const Resources& rank, const Resources& free, std::int64_t wanted) {
  std::int64_t count = wanted;
  const auto limit = [&count](std::int64_t need, std::int64_t have) {
    if (need > 0) count = std::min(count, std::max<std::int64_t>(0, have / need));
  };
  limit(rank.cpu_milli, free.cpu_milli);
  limit(rank.gpu_milli, free.gpu_milli);
  limit(rank.memory_bytes, free.memory_bytes);
  return count;
}

// Nodes from the best to the worst for what is left of a gang: the most ranks first; among equals
// the one with the least to spare, GPUs before CPUs, so that scarce and whole nodes stay free.
std::optional<std::size_t> best_node(std::span<const NodeCapacity> nodes, const Gang& gang,
                                     std::int64_t wanted) {
  const auto worth = [&](const NodeCapacity& node) {
    const std::int64_t count = ranks_that_fit(gang.per_rank, node.free, wanted);
    return std::tuple(-count, node.free.gpu_milli, node.free.cpu_milli, node.free.memory_bytes,
                      std::string_view(node.name));
  };
  const auto best = std::ranges::min_element(nodes, {}, worth);
  if (best == nodes.end() || ranks_that_fit(gang.per_rank, best->free, wanted) == 0)
    return std::nullopt;
  return static_cast<std::size_t>(best - nodes.begin());
}

bool place_gang(std::vector<NodeCapacity>& nodes, const Gang& gang, Assignment& out) {
  out.actor = gang.actor;
  while (std::ssize(out.nodes) < gang.ranks) {
    const std::int64_t wanted = gang.ranks - std::ssize(out.nodes);
    const std::optional<std::size_t> best = best_node(nodes, gang, wanted);
    if (!best) return false;
    NodeCapacity& node = nodes[*best];
    const std::int64_t count = ranks_that_fit(gang.per_rank, node.free, wanted);
    node.free = node.free - gang.per_rank * count;
    out.nodes.insert(out.nodes.end(), static_cast<std::size_t>(count), node.name);
  }
  return true;
}

std::vector<NodeCapacity> emptied(std::span<const NodeCapacity> nodes) {
  std::vector<NodeCapacity> empty(nodes.begin(), nodes.end());
  for (NodeCapacity& node : empty) node.free = node.total;
  return empty;
}

Resources sum(std::span<const NodeCapacity> nodes, Resources NodeCapacity::*part) {
  Resources all;
  for (const NodeCapacity& node : nodes) all = all + node.*part;
  return all;
}

// Component by component, so that the arithmetic names the one that is short.
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

bool fits_some(const Resources& rank, std::span<const NodeCapacity> nodes) {
  return std::ranges::any_of(nodes, [&](const NodeCapacity& n) { return fits(rank, n.total); });
}

Reason why_not(std::span<const NodeCapacity> nodes, std::span<const Gang> gangs) {
  Resources need;
  for (const Gang& gang : gangs) {
    if (!nodes.empty() && !fits_some(gang.per_rank, nodes)) {
      const Resources most = largest(nodes, &NodeCapacity::total);
      return InfeasibleShape{gang.actor + " needs " + text_of_lacking(gang.per_rank, most) +
                             " per rank; the largest node has " + text(most)};
    }
    need = need + gang.per_rank * gang.ranks;
  }
  return WaitingForCapacity{need, sum(nodes, &NodeCapacity::free)};
}

bool fit_together(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles) {
  return place(nodes, gangs_of(roles, "job")).index() == 0;
}

struct Knob {  // a count in the job file that can be lowered
  std::int32_t RoleDemand::*count;
  std::string RoleDemand::*key;
};
constexpr Knob kKnobs[] = {{&RoleDemand::replicas, &RoleDemand::replicas_key},
                           {&RoleDemand::ranks, &RoleDemand::ranks_key}};

std::string setting(const std::string& key, std::int32_t value) {
  return key + "=" + std::to_string(value);
}

// One count lowered as little as possible; else all of them lowered to 1.
std::optional<std::string> nearest_counts(std::span<const NodeCapacity> nodes,
                                          std::span<const RoleDemand> roles) {
  std::vector<RoleDemand> changed(roles.begin(), roles.end());
  for (RoleDemand& role : changed)
    for (const Knob& knob : kKnobs) {
      const std::int32_t asked = role.*knob.count;
      if ((role.*knob.key).empty()) continue;
      for (std::int32_t fewer = asked - 1; fewer >= 1; --fewer) {
        role.*knob.count = fewer;
        if (fit_together(nodes, changed)) return setting(role.*knob.key, fewer);
      }
      role.*knob.count = asked;
    }
  std::string settings;
  for (RoleDemand& role : changed)
    for (const Knob& knob : kKnobs) {
      if ((role.*knob.key).empty() || role.*knob.count == 1) continue;
      role.*knob.count = 1;
      settings += (settings.empty() ? "" : " and ") + setting(role.*knob.key, 1);
    }
  if (settings.empty() || !fit_together(nodes, changed)) return std::nullopt;
  return settings;
}

// The role whose rank fits no node, shrunk to the largest node's CPUs.
std::optional<std::string> nearest_shape(std::span<const NodeCapacity> nodes,
                                         std::span<const RoleDemand> roles) {
  std::vector<RoleDemand> changed(roles.begin(), roles.end());
  for (RoleDemand& role : changed) {
    if (role.cpus_key.empty() || fits_some(role.per_rank, nodes)) continue;
    role.per_rank.cpu_milli = largest(nodes, &NodeCapacity::total).cpu_milli;
    const std::string cpus = text({.cpu_milli = role.per_rank.cpu_milli});
    const std::string set = role.cpus_key + "=" + cpus.substr(0, cpus.find(' '));
    if (fit_together(nodes, changed)) return set;
    if (const auto counts = nearest_counts(nodes, changed)) return set + " and " + *counts;
  }
  return std::nullopt;
}

}  // namespace

std::variant<std::vector<Assignment>, Reason> place(std::span<const NodeCapacity> nodes,
                                                    std::span<const Gang> gangs) {
  std::vector<std::size_t> order(gangs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&gangs](std::size_t i) {
    const Gang& gang = gangs[i];
    return std::tuple(-gang.per_rank.gpu_milli, -gang.per_rank.cpu_milli,
                      -gang.per_rank.memory_bytes, -gang.ranks);
  });
  std::vector<NodeCapacity> left(nodes.begin(), nodes.end());
  std::vector<Assignment> assigned(gangs.size());
  for (const std::size_t i : order) {
    CHECK(gangs[i].ranks >= 1);
    if (!place_gang(left, gangs[i], assigned[i])) return why_not(nodes, gangs);
  }
  return assigned;
}

std::vector<Gang> gangs_of(std::span<const RoleDemand> roles, const std::string& job) {
  std::vector<Gang> gangs;
  for (const RoleDemand& role : roles)
    for (std::int32_t i = 0; i < role.replicas; ++i)
      gangs.push_back({job + "/" + role.role + "/" + std::to_string(i), role.per_rank, role.ranks});
  return gangs;
}

Result<void> fits_ever(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles) {
  const std::vector<NodeCapacity> empty = emptied(nodes);
  if (nodes.empty() || fit_together(empty, roles)) return {};

  Resources need;
  std::string parts;
  for (const RoleDemand& role : roles) {
    const std::int64_t ranks = std::int64_t{role.replicas} * role.ranks;
    need = need + role.per_rank * ranks;
    parts += (parts.empty() ? "" : " + ") + role.role + " " + std::to_string(ranks) + " × " +
             text(role.per_rank);
  }
  const Resources all = sum(empty, &NodeCapacity::total);
  const Resources most = largest(empty, &NodeCapacity::total);
  const Reason why = why_not(empty, gangs_of(roles, "job"));
  std::string message;
  if (const auto* shape = std::get_if<InfeasibleShape>(&why)) {
    message = "the job can never be placed: " + shape->arithmetic;
  } else {
    message = "the job can never be placed: it needs " + text_of_lacking(need, all) + " (" + parts +
              "); all nodes together have " + text(all) + ", the largest " + text(most);
  }
  std::optional<std::string> nearest = nearest_counts(empty, roles);
  if (!nearest) nearest = nearest_shape(empty, roles);
  const std::string help =
      nearest ? "with " + *nearest + " it would fit" : "add a node, or ask for less in pools.*";
  return Error{ErrorCode::kInfeasible, message, {}, help};
}

}  // namespace tandem::scheduler
