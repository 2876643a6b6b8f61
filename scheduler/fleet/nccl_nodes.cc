#include "scheduler/fleet/nccl_nodes.h"

#include <algorithm>

namespace tandem::scheduler {
namespace {

bool takes_a_share(const Resources& per_rank) {
  return per_rank.gpu_milli > 0 && per_rank.gpu_milli < kWholeGpu;
}

void append_fact(std::string& list, const std::string& fact) {
  list += (list.empty() ? "" : "; ") + fact;
}

// The facts about NCCL on nodes that have it or have GPUs: "a: no NCCL library; b has NCCL 2.28.9".
std::string nccl_found(std::span<const NodeCapacity> nodes) {
  std::string found;
  for (const NodeCapacity& node : nodes)
    if (!node.nccl.version.empty())
      append_fact(found, node.name + " has NCCL " + node.nccl.version);
    else if (node.total.gpu_milli > 0)
      append_fact(found, node.name + ": " +
                             (node.nccl.absent.empty() ? "no NCCL library" : node.nccl.absent));
  return found.empty() ? "no node has GPUs" : found;
}

// Whether the node has room for one rank of the job's communicators, NCCL left aside.
bool could_hold(const NodeCapacity& node, std::span<const RoleDemand> roles) {
  return std::ranges::any_of(roles, [&node](const RoleDemand& role) {
    const Gang one{.actor = role.role, .per_rank = role.per_rank};
    return role.nccl && place(std::span(&node, 1), std::span(&one, 1)).index() == 0;
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

}  // namespace

bool nccl_allows(const Gang& gang, const NodeCapacity& node) {
  if (!gang.nccl) return true;
  if (node.nccl.version.empty()) return false;
  if (takes_a_share(gang.per_rank) && !node.nccl.shares_gpus) return false;
  return gang.nccl_version.empty() || gang.nccl_version == node.nccl.version;
}

std::vector<std::string> nccl_versions(std::span<const NodeCapacity> nodes) {
  std::vector<std::string> versions;
  for (const NodeCapacity& node : nodes)
    if (!node.nccl.version.empty() &&
        std::ranges::find(versions, node.nccl.version) == versions.end())
      versions.push_back(node.nccl.version);
  return versions;
}

std::optional<std::string> nccl_trouble(std::span<const NodeCapacity> nodes, const Gang& gang) {
  const auto allowed = [&gang](const NodeCapacity& node) { return nccl_allows(gang, node); };
  if (!gang.nccl || std::ranges::any_of(nodes, allowed)) return std::nullopt;
  std::string need = gang.actor + " needs NCCL";
  if (!gang.nccl_version.empty()) need += " " + gang.nccl_version + ", which the job's others have";
  if (takes_a_share(gang.per_rank)) need += " that lets its ranks share a GPU";
  return need + "; " + nccl_found(nodes);
}

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

}  // namespace tandem::scheduler
