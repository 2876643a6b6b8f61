// Trained groups become durable, and a group's trip ends: a checkpoint covers its step, and its
// payload is released.
//
//   EX-C  A requested checkpoint is asked for again until it is saved, whoever dies meanwhile.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::actors {

// Asks the learner, which is up, for the checkpoint that is awaited.
void ask_checkpoint(Turn& turn);

void take(Turn& turn, const CheckpointSaved& saved);

}  // namespace tandem::actors
