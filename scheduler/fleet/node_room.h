// The room on nodes, in numbers and in the words of a refusal. Pure. Not responsible for the choice
// among nodes (placement.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler/fleet/placement_input.h"

namespace tandem::scheduler {

// The part of a node's free GPUs, in thousandths, that ranks with this need can take: whole GPUs
// for whole ones (PL-3), and multiples of the share on each GPU for shares.
std::int64_t usable_gpu_milli(const NodeCapacity& node, std::int64_t need);

// How many of `wanted` ranks the node has room for; none where it is cordoned (PL-5).
std::int64_t ranks_that_fit(const Resources& rank, const NodeCapacity& node, std::int64_t wanted);

// The nodes as if no job ran and nothing was cordoned.
std::vector<NodeCapacity> emptied(std::span<const NodeCapacity> nodes);

// What is cordoned of one node: "a", or else of its GPUs "a's GPU 3".
std::vector<std::string> cordoned_parts(const NodeCapacity& node);
// "a, b's GPU 3": all of it.
std::string cordoned(std::span<const NodeCapacity> nodes);

Resources sum(std::span<const NodeCapacity> nodes, Resources NodeCapacity::*part);

// The largest amount of each component, taken by itself, so that the arithmetic of a refusal names
// the component that is short.
Resources largest(std::span<const NodeCapacity> nodes, Resources NodeCapacity::*part);

// The agents' findings about GPUs, to be added to a refusal: the GPUs that cannot be used, of every
// node; and where no node has a usable GPU, the agent's finding on the first node without one.
std::string gpus_found(std::span<const NodeCapacity> nodes);

}  // namespace tandem::scheduler
