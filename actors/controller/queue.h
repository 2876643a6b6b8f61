// The decisions of the controller about room: which actors start now, on which node.
//
// Jobs start whole (in a cluster that grows, ClusterRules, with one rollout at least) and in the
// order in which they were submitted: only the first queued job is
// tried, and the others wait for it, so that a large job is not overtaken for ever by small ones.
// Actors of a running job that restart, or were added by scaling, take free room before any later
// job. Room that an actor in backoff will need again counts as taken for queued jobs.
//
// Nothing starts while the journal cannot be written, since the next controller would not know of
// it, nor an actor of which a process of a former incarnation is still ending (CC-1).
#pragma once

#include <string>
#include <vector>

#include "actors/controller/turn.h"
#include "scheduler/fleet/placement_input.h"

namespace tandem::controller {

// The controller's journal cannot be written, or can be again.
void take(Turn& turn, const JournalNews& news);

// Starts queued jobs and actors that now fit, and those whose backoff is over. Runs after every
// event, and returns false at once where nothing that it reads has changed.
bool schedule(Turn& turn);

// The actors in backoff of all jobs, whose room a queued job must leave free.
std::vector<scheduler::Gang> gangs_to_restart(ControllerState& state);

// If there are jobs, they wait from now on until the nodes of the controller before this one are
// up: for at most kNodesReturn, and for a node where former ranks of a job may live (CC-1) that job
// until they have ended by themselves. Without jobs those nodes are forgotten.
void await_nodes(Turn& turn);
// The node is waited for no more.
void give_up_awaited(Turn& turn, const std::string& node);

}  // namespace tandem::controller
