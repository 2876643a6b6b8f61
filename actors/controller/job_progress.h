// How far a job is before its end: its exchange says so for a job that trains, and the number of
// actors that are ready or have finished for a job that has nothing but programs.
#pragma once

#include "actors/controller/turn.h"

namespace tandem::controller {

// A job of actors alone runs once all are ready, and succeeds once all have finished. For other
// jobs count_ready() only says how many are ready.
void count_ready(Turn& turn, JobRecord& job);
void count_finished(Turn& turn, JobRecord& job);

void take(Turn& turn, const messages::JobProgress& progress);
void take(Turn& turn, const ExchangeOpened& opened);

}  // namespace tandem::controller
