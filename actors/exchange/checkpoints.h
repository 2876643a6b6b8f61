// Trained groups become durable, and a group's trip ends: a checkpoint covers its step, and its
// payload is released.
//
//   EX-2  A requested checkpoint is asked for again until it is saved, whoever dies meanwhile.
#pragma once

#include <cstdint>
#include <optional>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// Whether the schedule of checkpoints asks for one once `done` steps are committed.
bool save_is_due(const RunView& view, StepId done);
bool falls_due(std::int64_t frequency, std::int64_t step);  // never where the frequency is 0

// Asks the learner, which is up, for the checkpoint that is awaited.
void ask_checkpoint(Turn& turn);

void take(Turn& turn, const messages::CheckpointSaved& saved);

// The best checkpoint by learner.keep_best, once it is saved.
std::optional<BestCheckpoint> best_saved(const RunView& view);
// Has the run's files name it, where there is one.
void name_best(Turn& turn);

}  // namespace tandem::exchange
