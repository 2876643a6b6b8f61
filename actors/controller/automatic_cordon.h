// Nodes and GPUs that the controller itself cordons, because actors keep dying there and work
// elsewhere (scheduler/fleet/node_deaths.h). Such a cordon is a preference: it is made only while
// there is other room for what waits, and lifted where a job would stand still without it. What
// runs there goes on. The deaths are counted anew by each controller; a cordon outlives it as any
// other. GPUs are looked at before their node.
#pragma once

#include "actors/controller/turn.h"

namespace tandem::controller {

// The incarnation of the actor ends, since this rank of it ended for `why`.
void note_death(Turn& turn, const JobRecord& job, const ActorRecord& actor, const RankRecord& rank,
                const scheduler::Reason& why);
// After schedule(): where a queued job, or a role of which nothing lives, has no room because of
// automatic cordons, lifts those of one node with its GPUs, or of all nodes if no single one is
// enough. Returns whether it did; then the schedule is looked at again.
bool lift_needed_cordon(Turn& turn);

}  // namespace tandem::controller
