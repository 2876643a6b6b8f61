// A group's trip ends early: one live group is discarded, with its typed reason, and its payload is
// released.
#pragma once

#include <cstdint>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// Of its completions.
std::uint64_t tokens_of(const messages::GroupHeader& header);

void discard(Turn& turn, GroupId group, scheduler::DiscardReason reason);

}  // namespace tandem::exchange
