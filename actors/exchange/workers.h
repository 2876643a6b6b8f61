// Rollouts and rewards from their start to their end: they come up, show progress, drain and end,
// and their leases end with them or at a deadline.
//
//   EX-L  An incarnation that ended is never given work again, however late its messages are.
//   EX-I  No work goes to a rollout that installed other weights than were published, and none of
//         its tokens is taken after that: its incarnation ends.
#pragma once

#include <map>
#include <string>

#include "actors/exchange/turn.h"

namespace tandem::actors {

void take(Turn& turn, const RolloutUp& up);
void take(Turn& turn, const RewardUp& up);
void take(Turn& turn, const Installed& installed);
void take(Turn& turn, RolloutStats stats);
void take(Turn& turn, const DrainActor& drain);
// A worker's end; of another actor only its incarnation is noted.
void take(Turn& turn, const ActorDown& down);

void expire_leases(Turn& turn);
// Lets go of workers that drain and hold nothing, or whose deadline has come.
void finish_drains(Turn& turn);

// The worker that is up as this incarnation; null of any other.
const WorkerFacts* find(const std::map<std::string, WorkerFacts>& role, const Sender& from);
bool has_ended(const RunFacts& facts, const Sender& from);
// A holder that makes progress keeps what it holds, however long that takes.
void extend_leases(Turn& turn, const Sender& holder, Duration lease);

}  // namespace tandem::actors
