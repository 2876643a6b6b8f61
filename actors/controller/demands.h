// The resources that a job's shape asks for, as scheduler/fleet takes them. Pure functions;
// room.h says whether there is room.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/controller/controller_state.h"
#include "scheduler/fleet/placement.h"

namespace tandem::controller {

// One demand per role, in the order of the shape's roles.
std::vector<scheduler::RoleDemand> demands_of(const JobShape& shape);

// The ranks of one actor, which are placed together.
scheduler::Gang gang_of(const JobRecord& job, const ActorRecord& actor);

// The same job with the reservations of its ranks fixed: for a question about a job that is placed,
// where no change of its file could change them.
JobShape as_placed(JobShape shape);

// The pages of keys and values of a rank of this role, as settled() (room.h) decided; 0 for a role
// that takes none, or whose memory is not planned.
std::int64_t planned_pages(const JobShape& shape, const messages::Role& role);

}  // namespace tandem::controller
