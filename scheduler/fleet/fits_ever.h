// Whether a job could ever be placed, and the nearest change to the job file with which it could:
// asked once, when a job is submitted. Pure. Not responsible for placing (placement.h) or for the
// amounts of memory (memory_fit.h).
#pragma once

#include <span>

#include "runtime/base/result.h"
#include "scheduler/fleet/placement_input.h"

namespace tandem::scheduler {

// Whether the whole job would fit if no other job ran. If not: kInfeasible at submit, with the
// arithmetic and, as help, the nearest change that fits; where memory is short, with the table of
// memory (memory_fit.h). The answer is also no where NCCL alone rules the job out: the nodes that
// could hold ranks of its communicators have several versions of it, or too few have it, or they do
// not let ranks share a GPU. Without nodes the answer is yes: nothing is known before the first
// node joins.
Result<void> fits_ever(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles,
                       std::span<const MemoryOption> options = {});

}  // namespace tandem::scheduler
