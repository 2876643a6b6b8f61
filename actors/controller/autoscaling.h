// Fits the number of a job's rollouts to its trainer: gives the figures of each window of steps to
// the policy (scheduler/fleet/autoscale.h), and makes the change that it decides, in the same way
// as one that a user asks for (allocation.h). Whoever changes a number ends this until it is turned
// on again.
//
// Each change is an event with its figures, and so is each new reason why there is none.
#pragma once

#include <string>

#include "actors/controller/turn.h"

namespace tandem::controller {

void take(Turn& turn, const messages::FleetMeasured& measured);

// Whether a user may let the job choose. kInvalid for a role that it does not have, for another one
// than the rollouts, and for a job without pools.rollout.autoscale.
Result<void> may_autoscale(const JobRecord& job, const messages::Role& role);
// The user does, where that may be.
Result<void> let_autoscale(Turn& turn, JobRecord& job, const messages::Role& role);
// A clause for the event by which a user ends that.
std::string autoscale_is_off(const JobRecord& job);

// Remembers who decides and what a rollback restores, where that has changed.
void keep_allocation(Turn& turn, const JobRecord& job);
// Gives a job that was taken up what is remembered of that.
void restore_allocation(Turn& turn, JobRecord& job);

struct MoreRoom {
  std::int64_t places = 0;
  std::string goes_to;  // the job in the queue for which the room is kept; empty: none
};
// How many more actors of the role would find a place now; at most `most`. Actors of all jobs that
// wait or restart take room first. While a job waits for room in the queue there is none, unless
// the nodes that are up could not hold that job even if they were empty.
MoreRoom room_for(const ControllerState& state, const JobRecord& job, const messages::Role& role,
                  std::int64_t most);

}  // namespace tandem::controller
