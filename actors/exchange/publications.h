// Published versions, as rollouts are told of them, and the conversation with the ranks that
// broadcast them. Nothing here waits for a broadcast: a rollout whose NewVersion names no broadcast
// fetches the version.
//
//   EX-P  A version's place in a broadcast is told once to each rollout that the broadcast reaches.
#pragma once

#include "actors/exchange/turn.h"

namespace tandem::actors {

void take(Turn& turn, const BroadcastEvents& event);

// Sends what the broadcast groups want sent now.
void order_broadcasts(Turn& turn);
// Counts a publication, and keeps its place in a broadcast.
void note_publication(Turn& turn, const Publication& publication);
// The learner's epochs ended with the learner. The versions that it had published stay published,
// with the same content.
void end_broadcasts_of_learner(Turn& turn);
// Tells a rollout that is up of a version.
void announce(Turn& turn, const Sender& rollout, PolicyVersion version);

}  // namespace tandem::actors
