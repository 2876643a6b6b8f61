// Why a job's planned memory can never fit, and the nearest change to the job file with which it
// would. Pure. Not responsible for the amounts that ranks take (memory_demand.h) or for the choice
// of nodes (placement.h).
//
// All nodes here are empty ones, as fits_ever() sees them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "scheduler/fleet/placement_input.h"

namespace tandem::scheduler {

// Decides the pages of each role by the largest node, and from them per_rank.memory_bytes of every
// role that has a plan. A role without rows and pages stays as it is.
void settle_memory(std::span<RoleDemand> roles, std::span<const NodeCapacity> nodes);

// kInfeasible where a role's share of the largest node holds fewer pages than a rank needs.
Result<void> check_pages(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles,
                         std::span<const MemoryOption> options);

// Whether the roles would fit if they took no memory. Asked of roles that do not fit.
bool memory_is_short(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles);

// Why a job does not fit in memory, and what would help.
struct MemoryShortage {
  std::string message;  // the arithmetic, in a sentence
  std::optional<std::string>
      counts;  // lowered counts with which it would fit: "rollout.replicas=1"
};

// The error: the message, the table, and as help the nearest change. A change is looked for in this
// order: a smaller share for pages; an option of one change; lowered counts; any option, with a
// smaller share where it needs one. In any case the help says how much memory a node would need.
Error memory_refusal(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles,
                     std::span<const MemoryOption> options, MemoryShortage shortage);

// memory_table() of a job's roles.
std::string memory_table_of(std::span<const RoleDemand> roles);

}  // namespace tandem::scheduler
