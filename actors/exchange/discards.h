// A group's trip ends early: one live group is discarded, with its typed reason, and its payload is
// released.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::exchange {

void discard(Turn& turn, GroupId group, scheduler::DiscardReason reason);

}  // namespace tandem::exchange
