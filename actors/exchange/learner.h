// The conversation with the learner besides its steps: its incarnations, the warm start, and taking
// up a run that was interrupted.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::exchange {

void take(Turn& turn, const messages::LearnerUp& up);
void take(Turn& turn, const messages::Published& published);
void take(Turn& turn, messages::WarmStartProgress progress);
void take(Turn& turn, const messages::WarmStarted& started);
// Also comes from a learner that could not come up: LearnerUp never came.
void take(Turn& turn, const messages::LearnerFailed& failed);
void take(Turn& turn, messages::LearnerWaits waits);
void take(Turn& turn, HistoryRead read);
void take(Turn& turn, const RunTakenUp& taken);

// Ends the conversation with an incarnation of the learner, if `who` is one; called before the
// incarnation's end is recorded.
void learner_gone(Turn& turn, const ActorId& who);

}  // namespace tandem::exchange
