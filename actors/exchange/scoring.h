// Generated groups become scored ones: each is leased to a reward actor, whose answer has a score
// or a failure for every trajectory. Comes after generation.h; training.h is next.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::actors {

void lease_rewards(Turn& turn);

void take(Turn& turn, const GroupsScored& scored);
void take(Turn& turn, RewardTrouble trouble);

}  // namespace tandem::actors
