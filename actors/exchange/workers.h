// Rollouts and rewards from their start to their end: they come up, show progress, drain and end,
// and their leases end with them or at a deadline.
//
//   EX-6  An incarnation that ended is never given work again, however late its messages are.
//   EX-7  No work goes to a rollout that installed other weights than were published, and none of
//         its tokens is taken after that: its incarnation ends.
#pragma once

#include <map>
#include <string>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

void take(Turn& turn, const messages::RolloutUp& up);
void take(Turn& turn, const messages::RewardUp& up);
void take(Turn& turn, const messages::Installed& installed);
void take(Turn& turn, messages::RolloutStats stats);
void take(Turn& turn, const messages::DrainActor& drain);
// Takes the end of a worker; for another actor only the incarnation is noted.
void take(Turn& turn, const messages::ActorDown& down);

void expire_leases(Turn& turn);
// Lets go of workers that drain and hold nothing, or whose deadline has come.
void finish_drains(Turn& turn);

// The worker that is up as this incarnation; null if there is none.
const WorkerFacts* find(const std::map<std::string, WorkerFacts>& role,
                        const messages::Sender& from);
bool has_ended(const RunFacts& facts, const messages::Sender& from);
// A holder that makes progress keeps what it holds, however long that takes.
void extend_leases(Turn& turn, const messages::Sender& holder, Duration lease);

}  // namespace tandem::exchange
