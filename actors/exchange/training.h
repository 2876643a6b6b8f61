// Scored groups become trained ones: B of them are the batch of a step, which the learner trains
// and commits. Comes after scoring.h; checkpoints.h makes them durable.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// Sends the learner its next step, where it owes no answer: a batch that it must repeat, or a new
// one if the budget allows one to be formed.
void form(Turn& turn);
// Sends the step that the learner owes once more: it never got it.
void send_again(Turn& turn);
// Computes the figures of the batch in training anew, where the exchange before has formed it.
void note_formed_batch(Turn& turn);

void take(Turn& turn, const messages::StepCommitted& committed);

// Evaluates the last version and waits for the last checkpoint.
void finish_training(Turn& turn);

}  // namespace tandem::exchange
