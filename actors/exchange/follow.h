// An exchange that follows another one, which has died alone: the learner, rollouts and rewards
// work on. The state is that of the journal's end. A peer is away until it has said what it holds;
// it is told nothing and given no work before. Evaluations that were under way begin anew. Where
// the run has ended, its result is written if there is none, and the controller told.
//
//   EX-8  A group that a living actor holds is not given to another, and a step that the learner
//         has trained, or is training, is not trained again.
#pragma once

#include "actors/exchange/figure_history.h"
#include "actors/exchange/turn.h"

namespace tandem::exchange {

// ExchangeConfig::resume of an exchange that follows: whether the run was once resumed, or the
// attempt is one that resumes it, and the learner has not restored it yet.
bool resumes(const RunFacts& facts, bool has_earlier_attempt);

// The exchange before has left this state; `before` has the figures of its whole journal.
void follow(Turn& turn, FigureHistory before);

// A worker says what it holds, in the message of this name. One that is unknown comes up by it.
void meet_again(Turn& turn, const messages::Role& role, const ActorId& who, std::int64_t capacity,
                const std::vector<messages::HeldGroup>& held, Duration lease_time,
                const char* said);

void take(Turn& turn, const messages::RolloutBack& back);
void take(Turn& turn, const messages::LearnerBack& back);

// Gives up the actors of the time before that have not come back in time, and says once that those
// that have come back have told what they had stored by then.
void settle(Turn& turn);

}  // namespace tandem::exchange
