#include "scheduler/fleet/nccl_nodes.h"

#include <algorithm>

namespace tandem::scheduler {
namespace {

void append_fact(std::string& list, const std::string& fact) {
  list += (list.empty() ? "" : "; ") + fact;
}

}  // namespace

bool takes_a_share(const Resources& per_rank) {
  return per_rank.gpu_milli > 0 && per_rank.gpu_milli < kWholeGpu;
}

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

}  // namespace tandem::scheduler
