// What this machine's agent says of its node: its resources (runtime/node/resources.h), and its
// NCCL where it has GPUs.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/node/agent_messages.h"

namespace tandem::cli {

// The NCCL that open_nccl() finds here; whether its ranks may share a GPU is a matter of its
// version and of NCCL_MULTI_RANK_GPU_ENABLE. The library stays open, and touches no GPU.
runtime::NodeNccl find_nccl();

// Opens no NCCL on a machine without GPUs.
Result<runtime::NodeUp> describe_this_node(Incarnation incarnation);

// What a user lets a node offer; without a value what the machine has.
struct NodeOffer {
  std::optional<double> cpus = {};
  // A node offers no more than its machine can give now, however much is named here.
  std::optional<std::int64_t> memory_bytes = {};
};
Result<runtime::NodeUp> offered_node(Incarnation incarnation, const NodeOffer& offer);

}  // namespace tandem::cli
