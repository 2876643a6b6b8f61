// The end of a rank's process as the controller reasons about it: why it ended, whether it explains
// the end of its whole actor, and what to change where memory was short.
#pragma once

#include <cstdint>
#include <string>

#include "actors/messages/roles.h"
#include "runtime/node/agent_messages.h"
#include "scheduler/fleet/lifecycle.h"

namespace tandem::actors {

// `room_bytes`: the memory of its node.
scheduler::Reason reason_of(const runtime::RankExited& exited, std::int64_t room_bytes);

// Whether the end of a rank for `why` is the root cause of an actor's `ending`. Ranks of a gang
// lose each other: the complaint of one that lives may come before the news of the one that the
// kernel killed.
bool explains(const scheduler::Reason& why, const scheduler::Reason& ending);

// How a role needs less memory, or gets more: the end of a sentence.
std::string memory_advice(Role role);

}  // namespace tandem::actors
