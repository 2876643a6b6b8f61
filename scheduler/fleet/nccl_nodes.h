// Which nodes can hold the ranks that meet in communicators of NCCL (PL-4), in facts and in
// words. Pure. Not responsible for the facts about a node (its agent finds them) or
// for room (placement.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/fleet/placement_input.h"

namespace tandem::scheduler {

// Whether a rank takes a part of a GPU and not whole ones, so that two ranks could meet on one.
bool takes_a_share(const Resources& per_rank);

// Whether NCCL lets ranks of the gang run on the node, without regard to free resources. A gang
// that does not use NCCL may run anywhere; one that names no version takes any.
bool nccl_allows(const Gang& gang, const NodeCapacity& node);

// The versions of NCCL on the nodes, each once, in the order of the nodes.
std::vector<std::string> nccl_versions(std::span<const NodeCapacity> nodes);

// The facts about NCCL on nodes that have it or have GPUs: "a: no NCCL library; b has NCCL 2.28.9".
std::string nccl_found(std::span<const NodeCapacity> nodes);

// Why NCCL rules out every node for the gang, with the facts about nodes with GPUs; none where it
// allows at least one.
std::optional<std::string> nccl_trouble(std::span<const NodeCapacity> nodes, const Gang& gang);

}  // namespace tandem::scheduler
