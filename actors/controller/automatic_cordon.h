// Nodes that the controller itself cordons, because actors keep dying on them and work elsewhere
// (scheduler/fleet/node_deaths.h). Such a cordon is a preference: it is made only while others have
// room for what waits, and lifted where a job would stand still without the node. What runs on the
// node goes on. The deaths are counted anew by each controller; a cordon outlives it as any other.
#pragma once

#include "actors/controller/turn.h"

namespace tandem::controller {

// The incarnation of the actor ends, since its rank on `node` ended for `why`.
void note_death(Turn& turn, const JobRecord& job, const ActorRecord& actor, const std::string& node,
                const scheduler::Reason& why);
// Lifts automatic cordons, after the schedule, where a queued job or a role of which nothing lives
// has no room without them. Returns whether it did.
bool lift_needed_cordons(Turn& turn);

}  // namespace tandem::controller
