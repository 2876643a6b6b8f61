// The actors of roles that a job brings: programs of the user's, one process each, which the
// controller starts and ends like a rollout. Three things differ. A program that exits with 0 has
// finished and is not started again (actor_end.h); it is drained by a message of the controller,
// and not by an exchange (stopping.h); and a job that has nothing but programs has no exchange, so
// that the controller decides its progress (job_progress.h) and its end (job_end.h).
#pragma once

#include <string>

#include "actors/controller/turn.h"

namespace tandem::controller {

// Tells a program that is connected which actor it holds, once.
void start_program(Turn& turn, const JobRecord& job, ActorRecord& actor);
// Ends a program that takes too long to drain.
void end_overdue_program(Turn& turn, const JobRecord& job, ActorRecord& actor);

// ControllerCore has a function of this name, which says what it does.
Result<node::RankId> program_to_ask(const ControllerState& state, const std::string& asked);

}  // namespace tandem::controller
