// The changes of the state of a job or an actor, and of the set of a job's actors. All such changes
// pass here, so that each change of a state is announced, and the counts in JobRecord and the
// lookups (upkeep.h) are right. A job or an actor that is new, or gone, is announced by the part
// that adds or removes it.
#pragma once

#include <cstdint>
#include <string>

#include "actors/controller/turn.h"

namespace tandem::controller {

// Changes a state by the lifecycle's table, and announces a change.
void enter(Turn& turn, ActorRecord& actor, scheduler::ActorState to, scheduler::Reason reason);
void enter(Turn& turn, JobRecord& job, scheduler::JobState to, scheduler::Reason reason);

// Why an actor that is ready is as it is: it works, or its node has no agent.
scheduler::Reason at_work(const ControllerState& state, const ActorRecord& actor);
// The ready actors of the node enter that reason, after its agent has come or gone.
void renew_reasons(Turn& turn, const std::string& node);

// The job need not be taken up by a later controller.
void leave(Turn& turn, const std::string& job);

// The event by which a later controller finds the actor's ranks where they are.
ActorStarted started(const ActorRecord& actor);

void add_actor(Turn& turn, JobRecord& job, const messages::Role& role, std::int32_t index);
// Drops the record of an actor that was scaled away. The name may be that in the record.
void remove_actor(Turn& turn, JobRecord& job, const std::string& actor);

}  // namespace tandem::controller
