// The conversation with the learner besides its steps: its incarnations, the warm start, and taking
// up a run that was interrupted.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::actors {

void take(Turn& turn, const LearnerUp& up);
void take(Turn& turn, const Published& published);
void take(Turn& turn, WarmStartProgress progress);
void take(Turn& turn, const WarmStarted& started);
// Also of a learner that could not come up: LearnerUp never came.
void take(Turn& turn, const LearnerFailed& failed);
void take(Turn& turn, HistoryRead read);
void take(Turn& turn, const RunTakenUp& taken);

// Ends the conversation with an incarnation of the learner, if `who` is one; called before the
// incarnation's end is recorded.
void learner_gone(Turn& turn, const Sender& who);

}  // namespace tandem::actors
