// A learner that is to move to another node: it gets no new step, saves a checkpoint of the last
// one, and is let go. So no step is trained twice; after the deadline it goes all the same, and the
// steps since its last checkpoint are repeated elsewhere.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::exchange {

void drain_learner(Turn& turn, const messages::DrainActor& drain);
bool learner_drains(const RunView& view);
// Asks for the checkpoint once no step is under way, and tells the controller once it is saved.
void finish_learner_drain(Turn& turn);

}  // namespace tandem::exchange
