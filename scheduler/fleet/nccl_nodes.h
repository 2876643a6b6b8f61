// Which nodes can hold the ranks that meet in communicators of NCCL (PL-4), and why a job that
// needs NCCL is refused. Pure. Not responsible for the facts about a node (its agent finds them) or
// for room (placement.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "scheduler/fleet/placement.h"

namespace tandem::scheduler {

// Whether NCCL lets ranks of the gang run on the node, without regard to free resources. A gang
// that does not use NCCL may run anywhere; one that names no version takes any.
bool nccl_allows(const Gang& gang, const NodeCapacity& node);

// The versions of NCCL on the nodes, each once, in the order of the nodes.
std::vector<std::string> nccl_versions(std::span<const NodeCapacity> nodes);

// Why NCCL rules out every node for the gang, with the facts about nodes with GPUs; none where it
// allows at least one.
std::optional<std::string> nccl_trouble(std::span<const NodeCapacity> nodes, const Gang& gang);

// Checks a job whose ranks fit the empty `nodes` if NCCL is left aside. kInfeasible, with the nodes
// and their facts, where nodes that can hold ranks of its communicators have several versions, or
// where there is no room for the ranks without the nodes that have no NCCL, or that do not let
// ranks share a GPU.
Result<void> check_nccl(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles);

}  // namespace tandem::scheduler
