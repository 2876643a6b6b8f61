// The cost of a run so far, all its incarnations together (scheduler/fleet/cost.h).
//
// Device seconds count from the beginning of training, as idle fractions do: a rollout's while it
// is up, and those of the learner's ranks throughout, its restarts included, since its devices are
// kept for it. The time in which no exchange is there does not count.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::exchange {

messages::CostStatus cost_of(const RunView& view);
// Call it at each commit: the cost of a step is a mean over these.
void note_cost(Turn& turn);

}  // namespace tandem::exchange
