// Which nodes can hold the ranks that meet in communicators of NCCL (PL-4), and why a job that
// needs NCCL is refused. Pure. Not responsible for: what a node has (its agent finds out), room
// (placement.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "scheduler/fleet/placement.h"

namespace tandem::scheduler {

// Whatever the node has free. A gang that names no version takes any.
bool nccl_allows(const Gang& gang, const NodeCapacity& node);

// The versions of the nodes, each once, in the order of the nodes.
std::vector<std::string> nccl_versions(std::span<const NodeCapacity> nodes);

// Why NCCL allows no node to a gang, with what those with GPUs have; none where it allows one.
std::optional<std::string> nccl_trouble(std::span<const NodeCapacity> nodes, const Gang& gang);

// Of a job whose ranks fit the empty `nodes` if NCCL is left aside: kInfeasible where nodes that
// can hold ranks of its communicators have several versions, or where there is no room for them
// without the nodes that have no NCCL, or do not let ranks share a GPU; with the nodes and what
// they have.
Result<void> check_nccl(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles);

}  // namespace tandem::scheduler
