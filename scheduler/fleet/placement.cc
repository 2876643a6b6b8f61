// A greedy choice, node by node: of a gang's ranks as many as fit go to the best node
// (free_room.h), then the best node for the rest is sought. Gangs with the largest ranks go first,
// because small ones fit into the gaps that large ones leave. An exact packing of several shapes
// would need a search over all orders, which is exponential.
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

// A rank's GPUs on a node that has them: the first ones that are wholly free, or for a share the
// one GPU where the least (SPREAD: the most) is left.
std::vector<std::int32_t> gpus_for(const NodeCapacity& node, const Gang& gang) {
  const std::int64_t need = gang.per_rank.gpu_milli;
  const std::vector<std::int64_t>& free = node.gpus_free_milli;
  std::vector<std::int32_t> chosen;
  if (need == 0) return chosen;
  if (need >= kWholeGpu) {
    for (std::size_t i = 0; i < free.size() && std::ssize(chosen) * kWholeGpu < need; ++i)
      if (free[i] == kWholeGpu) chosen.push_back(static_cast<std::int32_t>(i));
    return chosen;
  }
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < free.size(); ++i) {
    if (free[i] < need) continue;
    const bool better =
        !best || (gang.strategy == Strategy::kPack ? free[i] < free[*best] : free[i] > free[*best]);
    if (better) best = i;
  }
  // FreeRoom::best() has found room, so `best` is set.
  chosen.push_back(static_cast<std::int32_t>(*best));
  return chosen;
}

void give_back(FreeRoom& room, const Gang& gang, const Assignment& assigned) {
  for (const RankPlace& place : assigned.ranks) room.give(place.node, place.gpus, gang.per_rank);
}

// Takes the places of the ranks one by one; where that fails, `room` stays as it was.
bool place_gang(FreeRoom& room, const Gang& gang, Assignment& out) {
  CHECK(gang.ranks >= 1);
  out.actor = gang.actor;
  while (std::ssize(out.ranks) < gang.ranks) {
    const std::int64_t wanted =
        gang.strategy == Strategy::kPack ? gang.ranks - std::ssize(out.ranks) : 1;
    const NodeCapacity* const best = room.best(gang, wanted);
    if (!best) {
      give_back(room, gang, out);
      return false;
    }
    for (std::int64_t n = ranks_that_fit(gang.per_rank, *best, wanted); n > 0; --n) {
      out.ranks.push_back({best->name, gpus_for(*best, gang)});
      room.take(out.ranks.back().node, out.ranks.back().gpus, gang.per_rank);
    }
  }
  return true;
}

// Why a rank of the gang fits no node even if nothing ran; none where it fits one.
std::optional<Reason> infeasible(const FreeRoom& room, const Gang& gang) {
  if (room.empty()) return std::nullopt;
  if (!room.fits_empty(gang.per_rank)) {
    const std::vector<NodeCapacity> nodes = room.all();
    const Resources most = largest(nodes, &NodeCapacity::total);
    return InfeasibleShape{gang.actor + " needs " + text_of_lacking(gang.per_rank, most) +
                           " per rank; the largest node has " + text(most) +
                           (gang.per_rank.gpu_milli > 0 ? gpus_found(nodes) : "")};
  }
  if (gang.nccl)
    if (auto trouble = nccl_trouble(room.all(), gang)) return InfeasibleShape{std::move(*trouble)};
  return std::nullopt;
}

// The reason why `gangs` were not placed: a rank that fits no empty node, else a want of room.
// Gangs of one role follow each other and are alike, so each role is examined once.
Reason why_not(const FreeRoom& room, std::span<const Gang> gangs) {
  Resources need;
  const Gang* before = nullptr;
  for (const Gang& gang : gangs) {
    const bool known = before && before->per_rank == gang.per_rank && before->nccl == gang.nccl;
    before = &gang;
    if (!known)
      if (auto why = infeasible(room, gang)) return *std::move(why);
    need = need + gang.per_rank * gang.ranks;
  }
  // GPUs free in pieces too small are not free for this gang.
  const auto most =
      std::ranges::max_element(gangs, {}, [](const Gang& gang) { return gang.per_rank.gpu_milli; });
  return WaitingForCapacity{need, most == gangs.end() ? room.free() : room.free_for(*most),
                            room.cordoned()};
}

// Places gangs of which those that need NCCL name its version, largest ranks first. The order of
// the result is that of `gangs`. Where that fails, `room` stays as it was.
std::variant<std::vector<Assignment>, Reason> place_settled(FreeRoom& room,
                                                            std::span<const Gang> gangs) {
  std::vector<std::size_t> order(gangs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&gangs](std::size_t i) {
    const Gang& gang = gangs[i];
    return std::tuple(-gang.per_rank.gpu_milli, -gang.per_rank.cpu_milli,
                      -gang.per_rank.memory_bytes, -gang.ranks);
  });
  std::vector<Assignment> assigned(gangs.size());
  for (auto at = order.begin(); at != order.end(); ++at) {
    if (place_gang(room, gangs[*at], assigned[*at])) continue;
    for (auto placed = order.begin(); placed != at; ++placed)
      give_back(room, gangs[*placed], assigned[*placed]);
    return why_not(room, gangs);
  }
  return assigned;
}

}  // namespace

std::variant<std::vector<Assignment>, Reason> place_all(FreeRoom& room,
                                                        std::span<const Gang> gangs) {
  // Gangs that need NCCL must get one version (PL-4): the versions of the nodes are tried one by
  // one.
  const auto open = [](const Gang& gang) { return gang.nccl && gang.nccl_version.empty(); };
  if (std::ranges::any_of(gangs, open)) {
    std::vector<Gang> settled(gangs.begin(), gangs.end());
    for (const std::string& version : nccl_versions(room.all())) {
      for (std::size_t i = 0; i < settled.size(); ++i)
        if (open(gangs[i])) settled[i].nccl_version = version;
      auto placed = place_settled(room, settled);
      if (placed.index() == 0) return placed;
    }
    return why_not(room, gangs);
  }
  return place_settled(room, gangs);
}

std::variant<std::vector<Assignment>, Reason> place(std::span<const NodeCapacity> nodes,
                                                    std::span<const Gang> gangs) {
  FreeRoom room(nodes);
  return place_all(room, gangs);
}

std::variant<Assignment, Reason> place_next(FreeRoom& room, const Gang& gang) {
  auto placed = place_all(room, std::span(&gang, 1));
  if (auto* const why = std::get_if<Reason>(&placed)) return std::move(*why);
  return std::move(std::get<0>(placed).front());
}

std::optional<Reason> short_of(const FreeRoom& room, std::span<const Gang> alike,
                               std::span<const std::int64_t> counts) {
  CHECK(alike.size() == counts.size());
  Resources need;
  for (std::size_t i = 0; i < alike.size(); ++i)
    need = need + alike[i].per_rank * (alike[i].ranks * counts[i]);
  const auto too_much = [&](std::int64_t Resources::*part) {
    return need.*part > 0 && need.*part > room.free().*part;
  };
  if (!too_much(&Resources::cpu_milli) && !too_much(&Resources::gpu_milli)) return std::nullopt;
  Reason why = why_not(room, alike);
  if (auto* const waits = std::get_if<WaitingForCapacity>(&why)) waits->need = need;
  return why;
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
