// The doors of an exchange: one for each kind of peer, made in a source of its own (reward_door.cc
// and so on). DR-1 and DR-2 (doors.h) hold for them.
#pragma once

#include <string>

#include "actors/messages/peers.h"
#include "runtime/link/remote.h"

namespace tandem::doors {

// The door of the port at which the exchange of `job` hears such a peer.
template <class Peer>
link::Door<typename Peer::Events> exchange_door(const std::string& job);

}  // namespace tandem::doors
