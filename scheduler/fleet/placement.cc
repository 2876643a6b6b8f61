// A greedy choice, node by node: of a gang's ranks as many as fit go to the best node, then the
// best node for the rest is sought. Gangs with the largest ranks go first, because small ones fit
// into the gaps that large ones leave. An exact packing of several shapes would need a search over
// all orders, which is exponential.
#include "scheduler/fleet/placement.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <tuple>

#include "runtime/base/check.h"
#include "scheduler/fleet/nccl_nodes.h"
#include "scheduler/fleet/node_room.h"

namespace tandem::scheduler {
namespace {

std::int64_t ranks_that_fit(const Gang& gang, const NodeCapacity& node, std::int64_t wanted) {
  return nccl_allows(gang, node) ? ranks_that_fit(gang.per_rank, node, wanted) : 0;
}

// The best node for the rest of a gang: the one that takes most of the ranks; among equals the one
// with the least to spare, GPUs before CPUs, so that scarce resources and whole nodes stay free.
// SPREAD asks for one rank at a time and turns the second choice around. Names break ties, so that
// the same nodes give the same placement.
std::optional<std::size_t> best_node(std::span<const NodeCapacity> nodes, const Gang& gang,
                                     std::int64_t wanted) {
  const std::int64_t order = gang.strategy == Strategy::kPack ? 1 : -1;
  const auto worth = [&](const NodeCapacity& node) {
    const std::int64_t count = ranks_that_fit(gang, node, wanted);
    return std::tuple(-count, order * node.free.gpu_milli, order * node.free.cpu_milli,
                      order * node.free.memory_bytes, std::string_view(node.name));
  };
  const auto best = std::ranges::min_element(nodes, {}, worth);
  if (best == nodes.end() || ranks_that_fit(gang, *best, wanted) == 0) return std::nullopt;
  return static_cast<std::size_t>(best - nodes.begin());
}

// Takes a rank's GPUs from a node that has them: the first ones that are wholly free, or for a
// share the one GPU where the least (SPREAD: the most) is left.
std::vector<std::int32_t> take_gpus(NodeCapacity& node, const Gang& gang) {
  const std::int64_t need = gang.per_rank.gpu_milli;
  std::vector<std::int64_t>& free = node.gpus_free_milli;
  std::vector<std::int32_t> taken;
  if (need == 0) return taken;
  if (need >= kWholeGpu) {
    for (std::size_t i = 0; i < free.size() && std::ssize(taken) * kWholeGpu < need; ++i)
      if (free[i] == kWholeGpu) taken.push_back(static_cast<std::int32_t>(i));
    for (const std::int32_t i : taken) free[static_cast<std::size_t>(i)] = 0;
    return taken;
  }
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < free.size(); ++i) {
    if (free[i] < need) continue;
    const bool better =
        !best || (gang.strategy == Strategy::kPack ? free[i] < free[*best] : free[i] > free[*best]);
    if (better) best = i;
  }
  // ranks_that_fit() has found room, so `best` is set.
  free[*best] -= need;
  taken.push_back(static_cast<std::int32_t>(*best));
  return taken;
}

bool place_gang(std::vector<NodeCapacity>& nodes, const Gang& gang, Assignment& out) {
  out.actor = gang.actor;
  while (std::ssize(out.ranks) < gang.ranks) {
    const std::int64_t wanted =
        gang.strategy == Strategy::kPack ? gang.ranks - std::ssize(out.ranks) : 1;
    const std::optional<std::size_t> best = best_node(nodes, gang, wanted);
    if (!best) return false;
    NodeCapacity& node = nodes[*best];
    for (std::int64_t n = ranks_that_fit(gang, node, wanted); n > 0; --n) {
      out.ranks.push_back({node.name, take_gpus(node, gang)});
      node.free = node.free - gang.per_rank;
    }
  }
  return true;
}

bool fits_some(const Resources& rank, std::span<const NodeCapacity> empty) {
  return std::ranges::any_of(
      empty, [&](const NodeCapacity& n) { return ranks_that_fit(rank, n, 1) == 1; });
}

// The reason why `gangs` were not placed: a rank that fits no empty node, else a want of room.
// Gangs of one role follow each other and are alike, so each role is examined once.
Reason why_not(std::span<const NodeCapacity> nodes, std::span<const Gang> gangs) {
  const std::vector<NodeCapacity> empty = emptied(nodes);
  Resources need;
  const Gang* before = nullptr;  // the actors of a role follow each other and need the same
  for (const Gang& gang : gangs) {
    const bool known = before && before->per_rank == gang.per_rank && before->nccl == gang.nccl;
    before = &gang;
    if (!nodes.empty() && !known && !fits_some(gang.per_rank, empty)) {
      const Resources most = largest(nodes, &NodeCapacity::total);
      return InfeasibleShape{gang.actor + " needs " + text_of_lacking(gang.per_rank, most) +
                             " per rank; the largest node has " + text(most) +
                             (gang.per_rank.gpu_milli > 0 ? gpus_found(nodes) : "")};
    }
    if (!nodes.empty() && !known)
      if (auto trouble = nccl_trouble(nodes, gang)) return InfeasibleShape{std::move(*trouble)};
    need = need + gang.per_rank * gang.ranks;
  }
  Resources free = sum(nodes, &NodeCapacity::free);
  if (!gangs.empty()) {  // GPUs free in pieces too small are not free for this gang
    const Gang& most = *std::ranges::max_element(
        gangs, {}, [](const Gang& gang) { return gang.per_rank.gpu_milli; });
    free.gpu_milli = 0;
    for (const NodeCapacity& node : nodes)
      if (nccl_allows(most, node))
        free.gpu_milli += usable_gpu_milli(node, most.per_rank.gpu_milli);
  }
  return WaitingForCapacity{need, free, cordoned(nodes)};
}

// Places gangs of which those that need NCCL name its version, largest ranks first. The order of
// the result is that of `gangs`.
std::variant<std::vector<Assignment>, Reason> place_settled(std::span<const NodeCapacity> nodes,
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

}  // namespace

std::variant<std::vector<Assignment>, Reason> place(std::span<const NodeCapacity> nodes,
                                                    std::span<const Gang> gangs) {
  // Gangs that need NCCL must get one version (PL-4): the versions of the nodes are tried one by
  // one.
  const auto open = [](const Gang& gang) { return gang.nccl && gang.nccl_version.empty(); };
  if (std::ranges::any_of(gangs, open)) {
    std::vector<Gang> settled(gangs.begin(), gangs.end());
    for (const std::string& version : nccl_versions(nodes)) {
      for (std::size_t i = 0; i < settled.size(); ++i)
        if (open(gangs[i])) settled[i].nccl_version = version;
      auto placed = place_settled(nodes, settled);
      if (placed.index() == 0) return placed;
    }
    return why_not(nodes, gangs);
  }
  return place_settled(nodes, gangs);
}

std::variant<Assignment, Reason> place_next(std::vector<NodeCapacity>& room, const Gang& gang) {
  CHECK(gang.ranks >= 1);
  if (gang.nccl && gang.nccl_version.empty()) {
    Gang settled = gang;
    for (const std::string& version : nccl_versions(room)) {
      settled.nccl_version = version;
      auto placed = place_next(room, settled);
      if (placed.index() == 0) return placed;
    }
    return why_not(room, std::span(&gang, 1));
  }
  // A gang of one rank that is not placed has changed nothing: it needs no copy.
  std::vector<NodeCapacity> before;
  if (gang.ranks > 1) before = room;
  Assignment assignment;
  if (place_gang(room, gang, assignment)) return assignment;
  if (gang.ranks > 1) room = std::move(before);
  return why_not(room, std::span(&gang, 1));
}

Result<std::int32_t> replicas_of(std::string_view role, std::string_view count,
                                 ReplicaBounds bounds) {
  std::int32_t number = 0;
  const char* const end = count.data() + count.size();
  const bool read = std::from_chars(count.data(), end, number) == std::from_chars_result{end, {}};
  if (read && number >= bounds.least && number <= bounds.most) return number;
  return Error{ErrorCode::kInvalid,
               "cannot scale " + std::string(role) + " to " + std::string(count) + ": a role has " +
                   std::to_string(bounds.least) + " to " + std::to_string(bounds.most) + " actors",
               "", "to stop a job: tandem cancel JOB"};
}

std::vector<Gang> gangs_of(std::span<const RoleDemand> roles, const std::string& job) {
  std::vector<Gang> gangs;
  for (const RoleDemand& role : roles)
    for (std::int32_t i = 0; i < role.replicas; ++i)
      gangs.push_back({.actor = job + "/" + role.role + "/" + std::to_string(i),
                       .per_rank = role.per_rank,
                       .ranks = role.ranks,
                       .strategy = role.strategy,
                       .nccl = role.nccl});
  return gangs;
}

}  // namespace tandem::scheduler
