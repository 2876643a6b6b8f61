// What the links of a controller say about their peers. Pure functions.
#pragma once

#include "runtime/link/link.h"
#include "runtime/node/agent_messages.h"

namespace tandem::app {

// The rank that a peer is, which is no node: by its introduction; or by its name alone, which
// messages::rank_name() made.
node::RankId rank_of(const ActorId& peer, const link::Hello& hello);
node::RankId rank_of(const ActorId& peer);

// Whether the end of a link means that the peer's process has ended.
bool has_died(link::Down::Reason reason);

}  // namespace tandem::app
