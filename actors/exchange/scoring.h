// Generated groups become scored ones: each is leased to a reward actor, whose answer has a score
// or a failure for every trajectory. Comes after generation.h; training.h is next.
#pragma once

#include <string>

#include "actors/exchange/turn.h"

namespace tandem::actors {

void lease_rewards(Turn& turn);

// Ends the job, of which no completion has ever been scored; `reason` is of the last one.
void fail_for_reward(Turn& turn, const std::string& reason);

void take(Turn& turn, const GroupsScored& scored);
void take(Turn& turn, RewardTrouble trouble);

}  // namespace tandem::actors
