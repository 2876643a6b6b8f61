// The totals of a run's work up to now: those of its earlier incarnations, of this one, and of the
// rollouts that are up.
#pragma once

#include <optional>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// How long the rollout was up, of the part of the run that trains, until it last told how busy it
// was, in seconds.
double reported_seconds(const RunView& view, const WorkerSeen& rollout);
WorkTotals work_of(const RunView& view);
double rollout_idle_fraction(const RunView& view);  // 0…1, of all rollouts
double trainer_idle_fraction(const RunView& view);  // 0…1

// Records the totals for a later incarnation of the run. `publication` is that of the step just
// trained.
void note_totals(Turn& turn, const std::optional<messages::Publication>& publication);

}  // namespace tandem::exchange
