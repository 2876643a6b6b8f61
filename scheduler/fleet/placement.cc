// A greedy choice, node by node: of a gang's ranks as many as fit go to the best node, then the
// best node for the rest is sought. Gangs with the largest ranks go first, because small ones fit
// into the gaps that large ones leave. An exact packing of several shapes would need a search over
// all orders, which is exponential.
//
// The second half of the file explains refusals. A reason or a hint is found by trial: the job with
// one setting changed is placed on empty nodes, until it fits. Trials are bounded (kCountsTried),
// since each is a placement of the whole job.
#include "scheduler/fleet/placement.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <tuple>

#include "runtime/base/check.h"
#include "scheduler/fleet/memory_fit.h"
#include "scheduler/fleet/nccl_nodes.h"

namespace tandem::scheduler {
namespace {

// The part of a node's free GPUs, in thousandths, that ranks with this need can take: whole GPUs
// for whole ones (PL-3), and multiples of the share on each GPU for shares.
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

// How many of `wanted` ranks the node has room for.
std::int64_t ranks_that_fit(const Resources& rank, const NodeCapacity& node, std::int64_t wanted) {
  std::int64_t count = wanted;
  const auto limit = [&count](std::int64_t need, std::int64_t have) {
    if (need > 0) count = std::min(count, std::max<std::int64_t>(0, have / need));
  };
  limit(rank.cpu_milli, node.free.cpu_milli);
  limit(rank.gpu_milli, usable_gpu_milli(node, rank.gpu_milli));
  if (node.total.memory_bytes > 0) limit(rank.memory_bytes, node.free.memory_bytes);
  return count;
}

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

// The nodes as if no job ran.
std::vector<NodeCapacity> emptied(std::span<const NodeCapacity> nodes) {
  std::vector<NodeCapacity> empty(nodes.begin(), nodes.end());
  for (NodeCapacity& node : empty) {
    node.free = node.total;
    std::ranges::fill(node.gpus_free_milli, kWholeGpu);
  }
  return empty;
}

Resources sum(std::span<const NodeCapacity> nodes, Resources NodeCapacity::*part) {
  Resources all;
  for (const NodeCapacity& node : nodes) all = all + node.*part;
  return all;
}

// The largest amount of each component, taken by itself, so that the arithmetic names the component
// that is short.
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

bool fits_some(const Resources& rank, std::span<const NodeCapacity> empty) {
  return std::ranges::any_of(
      empty, [&](const NodeCapacity& n) { return ranks_that_fit(rank, n, 1) == 1; });
}

// Adds what the agents found about GPUs to a refusal: the GPUs that cannot be used, of every node;
// and where no node has a usable GPU, the agent's finding on the first node without one.
std::string gpus_found(std::span<const NodeCapacity> nodes) {
  const bool some = std::ranges::any_of(nodes, [](const auto& n) { return n.total.gpu_milli > 0; });
  std::string unusable;
  const NodeCapacity* first = nullptr;  // of those without any
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
  return WaitingForCapacity{need, free};
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

// An upper bound on the actors of a role that fit empty nodes with the other roles as they are: by
// the resources of all nodes, and by the ranks of this role alone that each node holds. It spares
// trials that cannot succeed.
std::int64_t replicas_at_most(std::span<const NodeCapacity> empty,
                              std::span<const RoleDemand> roles, const RoleDemand& role) {
  Resources left = sum(empty, &NodeCapacity::total);
  for (const RoleDemand& other : roles)
    if (&other != &role)
      left = left - other.per_rank * (std::int64_t{other.replicas} * other.ranks);
  std::int64_t most = role.replicas;
  const Resources need = role.per_rank * role.ranks;
  const auto limit = [&most](std::int64_t each, std::int64_t have) {
    if (each > 0) most = std::min(most, std::max<std::int64_t>(0, have / each));
  };
  limit(need.cpu_milli, left.cpu_milli);
  limit(need.gpu_milli, left.gpu_milli);
  const bool all_announce = std::ranges::all_of(
      empty, [](const NodeCapacity& node) { return node.total.memory_bytes > 0; });
  if (all_announce) limit(need.memory_bytes, left.memory_bytes);
  std::int64_t ranks = 0;
  for (const NodeCapacity& node : empty)
    ranks += ranks_that_fit(role.per_rank, node, std::int64_t{role.replicas} * role.ranks);
  return std::min(most, ranks / role.ranks);
}

// Counts below that bound are tried one by one, then halved: a placement of thousands of actors
// takes milliseconds, and this is only a hint.
constexpr int kCountsTried = 16;

// The settings of a job that fits: one count lowered as little as possible, else all of them
// lowered to 1; none where that does not fit either.
std::optional<std::string> nearest_counts(std::span<const NodeCapacity> nodes,
                                          std::span<const RoleDemand> roles) {
  std::vector<RoleDemand> changed(roles.begin(), roles.end());
  for (RoleDemand& role : changed)
    for (const Knob& knob : kKnobs) {
      const std::int32_t asked = role.*knob.count;
      if ((role.*knob.key).empty()) continue;
      std::int64_t most = asked - 1;
      if (knob.count == &RoleDemand::replicas)
        most = std::min(most, replicas_at_most(nodes, changed, role));
      int tried = 0;
      for (auto fewer = static_cast<std::int32_t>(most); fewer >= 1;
           fewer = ++tried < kCountsTried ? fewer - 1 : fewer / 2) {
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

struct Amount {  // of a rank, that can be lowered in the job file
  std::int64_t Resources::*part;
  std::string RoleDemand::*key;
};
constexpr Amount kAmounts[] = {{&Resources::cpu_milli, &RoleDemand::cpus_key},
                               {&Resources::gpu_milli, &RoleDemand::gpus_key}};

// 2000 thousandths as "2.0".
std::string amount_text(std::int64_t milli) {
  const std::string cpus = text({.cpu_milli = milli});
  return cpus.substr(0, cpus.find(' '));
}

// The settings of a job that fits when ranks that are too large for any node are shrunk to the
// largest node's size; with lowered counts where that alone is not enough.
std::optional<std::string> nearest_shape(std::span<const NodeCapacity> nodes,
                                         std::span<const RoleDemand> roles) {
  const Resources most = largest(nodes, &NodeCapacity::total);
  std::vector<RoleDemand> changed(roles.begin(), roles.end());
  std::string settings;
  for (RoleDemand& role : changed)
    for (const Amount& amount : kAmounts) {
      std::int64_t& need = role.per_rank.*amount.part;
      if ((role.*amount.key).empty() || need <= most.*amount.part) continue;
      need = most.*amount.part;
      settings += (settings.empty() ? "" : " and ") + role.*amount.key + "=" + amount_text(need);
      if (fit_together(nodes, changed)) return settings;
      if (const auto counts = nearest_counts(nodes, changed)) return settings + " and " + *counts;
    }
  return std::nullopt;
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

Result<void> fits_ever(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> asked,
                       std::span<const MemoryOption> options) {
  if (nodes.empty()) return {};
  const std::vector<NodeCapacity> empty = emptied(nodes);
  std::vector<RoleDemand> roles(asked.begin(), asked.end());
  // First the refusals that do not concern NCCL.
  for (RoleDemand& role : roles) role.nccl = false;
  if (const auto enough = check_pages(empty, roles, options); !enough) return enough;
  if (fit_together(empty, roles)) return check_nccl(empty, asked);

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
              "); all nodes together have " + text(all) + ", the largest " + text(most) +
              (need.gpu_milli > 0 ? gpus_found(empty) : "");
  }
  if (memory_is_short(empty, roles))
    return memory_refusal(empty, roles, options, {message, nearest_counts(empty, roles)});
  std::optional<std::string> nearest = nearest_counts(empty, roles);
  if (!nearest) nearest = nearest_shape(empty, roles);
  const std::string help =
      nearest ? "with " + *nearest + " it would fit" : "add a node, or ask for less in pools.*";
  return Error{ErrorCode::kInfeasible, message, {}, help};
}

}  // namespace tandem::scheduler
