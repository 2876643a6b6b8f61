// The description of this machine as a node: its resources (runtime/node/resources.h), the NCCL
// library where it has GPUs, and the share of both that the user lets it offer.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/node/agent_messages.h"

namespace tandem::app {

// The NCCL library that open_nccl() finds here, or why there is none. Whether its ranks may share a
// GPU depends on its version and on NCCL_MULTI_RANK_GPU_ENABLE. The library stays open for the rest
// of the process, and no GPU is touched. Any thread.
node::NodeNccl find_nccl();

// All that the machine has; NCCL is looked for only if there is a GPU. Errors: the resources cannot
// be read.
Result<node::NodeUp> describe_this_node(Incarnation incarnation);

// The part of a machine that a user lets a node offer; without a value, all that the machine has.
struct NodeOffer {
  std::optional<double> cpus = {};
  // Bytes. A node offers no more than its machine can give at its start, however much is named
  // here.
  std::optional<std::int64_t> memory_bytes = {};
};
// describe_this_node() within `offer`. More CPUs than the machine has may be offered.
Result<node::NodeUp> offered_node(Incarnation incarnation, const NodeOffer& offer);

}  // namespace tandem::app
