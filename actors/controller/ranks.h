// The processes of an actor from their spawn until all are ready, and what they say of themselves
// while they live. Their end is the subject of actor_end.h.
#pragma once

#include "actors/controller/turn.h"

namespace tandem::controller {

void take(Turn& turn, const node::RankSpawned& spawned);
void take(Turn& turn, const RankConnected& connected);
void take(Turn& turn, const messages::RankListening& listening);
void take(Turn& turn, const messages::RankReady& ready);
void take(Turn& turn, const messages::RankFailed& failed);
void take(Turn& turn, const RankHung& hung);
// A silent rank is waited for with its node; where its agent is heard, it is ended soon.
void take(Turn& turn, const RankSilent& event);
// Ends actors whose processes live and have not reported, or drained, in time.
void take(Turn& turn, const Tick&);

}  // namespace tandem::controller
