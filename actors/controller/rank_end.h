// The end of a rank's process as the controller reasons about it: why the process ended, whether
// that explains the end of its whole actor, and what to change where memory was short. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>

#include "actors/messages/event_level.h"
#include "actors/messages/roles.h"
#include "runtime/node/agent_messages.h"
#include "scheduler/fleet/lifecycle.h"

namespace tandem::controller {

// Why the process ended. `room_bytes`: the memory of the rank's node.
scheduler::Reason reason_of(const node::RankExited& exited, std::int64_t room_bytes);

// Whether the end of a rank for `why` is the root cause of an actor's `ending`. When the kernel
// kills one rank of a gang, the others fail as well, and the complaint of one of them may arrive
// before the report of the killed one.
bool explains(const scheduler::Reason& why, const scheduler::Reason& ending);

// Whether the process ended by a fault of its own: by a signal that a program raises by what it
// does. A kill, an exit code or an error that a rank reports may have its cause outside.
bool is_crash(const scheduler::Reason& reason);

// Whether a prompt may have ended the rollout: by a crash, or by a hang while the rollout took
// prompts or generated. Its other work (a load, weights) does not depend on prompts, and a process
// that a signal has stopped hangs in a phase of its own.
bool may_be_of_a_prompt(const scheduler::Reason& reason);

// Whether the start of an actor that has worked failed for want of a disk that can be written.
bool is_of_disk(const scheduler::Reason& reason);

// How much an event wants to be looked at that tells of this reason: a death that is dealt with is
// a warning, one that costs the job or the actor is an error.
messages::EventLevel level_of(const scheduler::Reason& reason);

// How a role needs less memory, or gets more: a clause for the end of a sentence.
std::string memory_advice(const messages::Role& role);

}  // namespace tandem::controller
