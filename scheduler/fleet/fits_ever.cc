// A reason or a hint is found by trial: the job with one setting changed is placed on empty nodes,
// until it fits. Trials are bounded (kCountsTried), since each is a placement of the whole job. The
// refusals that do not concern NCCL come first; a job that passes them is then placed with its
// needs of NCCL.
#include "scheduler/fleet/fits_ever.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/fleet/memory_fit.h"
#include "scheduler/fleet/nccl_nodes.h"
#include "scheduler/fleet/node_room.h"
#include "scheduler/fleet/placement.h"

namespace tandem::scheduler {
namespace {

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

struct Amount {  // an amount of a rank that can be lowered in the job file
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

// Whether the node has room for one rank of the job's communicators, NCCL left aside.
bool could_hold(const NodeCapacity& node, std::span<const RoleDemand> roles) {
  return std::ranges::any_of(roles, [&node](const RoleDemand& role) {
    return role.nccl && ranks_that_fit(role.per_rank, node, 1) == 1;
  });
}

Error refusal(const std::string& why, const std::string& help) {
  return {ErrorCode::kInfeasible, "the job can never be placed: " + why, {}, help};
}

constexpr const char* kOneVersion =
    "ranks that exchange data by NCCL need the same version of it; install one on these nodes, or "
    "set TANDEM_NCCL_LIBRARY for their agents";
constexpr const char* kInstall =
    "install NCCL 2.19 or later there (tandem doctor, on the node, says where it is looked for) "
    "and "
    "start the node again; or set weight_broadcast.type=auto and learner.ranks=1";

std::string sharing_help(std::span<const RoleDemand> roles) {
  std::string keys;
  for (const RoleDemand& role : roles)
    if (role.nccl && takes_a_share(role.per_rank))
      keys += (keys.empty() ? "" : " and ") + role.gpus_key + "=1";
  return "set " + keys +
         ", or on every node NCCL_MULTI_RANK_GPU_ENABLE=1 before its agent starts, with NCCL "
         "2.30.3 or later";
}

// The job fits if NCCL is left aside.
Result<void> check_nccl(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles) {
  if (std::ranges::none_of(roles, &RoleDemand::nccl)) return {};
  std::vector<NodeCapacity> able;
  for (const NodeCapacity& node : nodes)
    if (could_hold(node, roles)) able.push_back(node);
  if (nccl_versions(able).size() > 1)
    return refusal("its nodes have several versions of NCCL: " + nccl_found(able), kOneVersion);
  if (place(nodes, gangs_of(roles, "job")).index() == 0) return {};

  // The job fits without NCCL, so NCCL keeps it out: by being absent, or by not sharing GPUs. A
  // trial on nodes that all share GPUs tells which.
  std::vector<NodeCapacity> sharing(nodes.begin(), nodes.end());
  for (NodeCapacity& node : sharing) node.nccl.shares_gpus = true;
  if (place(sharing, gangs_of(roles, "job")).index() == 0)
    return refusal(
        "with shares of a GPU two ranks of one NCCL communicator could meet on it, which NCCL "
        "allows since 2.30.3 and where it is told to; " +
            nccl_found(able),
        sharing_help(roles));
  return refusal("it needs NCCL; " + nccl_found(able), kInstall);
}

}  // namespace

Result<void> fits_ever(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> asked,
                       std::span<const MemoryOption> options) {
  if (nodes.empty()) return {};
  const std::vector<NodeCapacity> empty = emptied(nodes);
  std::vector<RoleDemand> roles(asked.begin(), asked.end());
  // The refusals that do not concern NCCL come first.
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
  const Reason why = std::get<Reason>(place(empty, gangs_of(roles, "job")));
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
