// Generated groups become scored ones: each is leased to a reward actor, whose answer has a score
// or a failure for every trajectory. Comes after generation.h; training.h is next.
#pragma once

#include <string>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

void lease_rewards(Turn& turn);

// Ends the job, none of whose completions has ever been scored; `reason` is that of the last one.
void fail_for_reward(Turn& turn, const std::string& reason);

void take(Turn& turn, const messages::GroupsScored& scored);
void take(Turn& turn, messages::RewardTrouble trouble);

}  // namespace tandem::exchange
