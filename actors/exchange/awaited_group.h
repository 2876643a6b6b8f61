// The group that the next training step waits for, as `tandem why` follows it to whoever has it.
// Pure.
#pragma once

#include <optional>

#include "actors/exchange/turn.h"
#include "actors/messages/exchange.h"

namespace tandem::exchange {

// The live group that is not scored and whose turn comes first: under a fixed lag the first one
// that is missing in the next step, else the one that is due first. None where every live group is
// scored.
std::optional<GroupId> awaited_group(const RunView& view);

// What that group waits for: its holder, or one that takes it. The wait's deadline is the end of
// the group's lease, which progress of its holder puts off.
messages::Wait wait_of_group(const RunView& view, GroupId group);

}  // namespace tandem::exchange
