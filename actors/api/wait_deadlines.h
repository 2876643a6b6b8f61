// Until when the waits that `tandem why` and the wait graph show can last. Pure.
//
// Some waits have a timer of their own. The others wait for the work of an actor: they end by the
// work, or when the actor counts as hung and is ended (scheduler/fleet/hang_timeout.h). Each piece
// of that work puts the deadline off. A wait for an actor that is idle itself has no deadline here:
// that actor's own wait has one. A wait without a deadline names who ends it
// (scheduler/fleet/wait_end.h).
#pragma once

#include <optional>
#include <string>

#include "actors/controller/watchdog.h"
#include "scheduler/fleet/wait_end.h"

namespace tandem::api {

// Until when an actor that is not ready can stay as it is.
std::optional<Time> deadline_of(const controller::ActorRecord& actor,
                                const controller::WorkByActor& work);
// Who ends that where there is no deadline.
scheduler::EndedBy ended_by(const controller::ActorRecord& actor);

// The actor, by its full name, with which the words of an exchange's wait begin; if they begin with
// another word, there is no actor of that name.
std::string actor_named_in(const messages::Wait& wait);
// The seconds that are left of a wait that an exchange has told of.
std::optional<double> deadline_s(const messages::Wait& wait, const controller::WorkByActor& work,
                                 Time now);

}  // namespace tandem::api
