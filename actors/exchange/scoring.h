// Generated groups become scored ones: each is leased to a reward actor, whose answer has a score
// or a failure for every trajectory. Comes after generation.h; training.h is next. The completions
// of evaluations are scored beside them, without a lease.
#pragma once

#include <string>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

void lease_rewards(Turn& turn);
void evaluate_by_rewards(Turn& turn, Evaluation& evaluation);
messages::ActorLoad load_of_reward(const RunView& view, const WorkerFacts& worker);

void take(Turn& turn, const messages::RewardUp& up);
void take(Turn& turn, const messages::RewardBack& back);
void take(Turn& turn, const messages::GroupsScored& scored);
void take(Turn& turn, const messages::TextsScored& scored);
void take(Turn& turn, messages::RewardTrouble trouble);

}  // namespace tandem::exchange
