// What this machine's agent says of its node: its resources (runtime/node/resources.h), and its
// NCCL where it has GPUs.
#pragma once

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/node/agent_messages.h"

namespace tandem::cli {

// The NCCL that open_nccl() finds here; whether its ranks may share a GPU is a matter of its
// version and of NCCL_MULTI_RANK_GPU_ENABLE. The library stays open, and touches no GPU.
runtime::NodeNccl find_nccl();

// Opens no NCCL on a machine without GPUs.
Result<runtime::NodeUp> describe_this_node(Incarnation incarnation);

}  // namespace tandem::cli
